"""Views as JSON."""

import json

import numpy as np
import pytest
import torch

import zoo
from zoo_inspect.stored import decode_value, encode_value, from_json, to_json, weights_to_json


def test_a_view_is_read_back_exactly():
    view = zoo.attend(zoo.compose("bert-tiny", seed=0), [5, 6, 7])
    data = json.loads(json.dumps({**to_json(view), "weights": weights_to_json(view)}))
    weights = [torch.tensor(each) for each in data["weights"]]
    again = from_json(data, weights)
    assert to_json(again) == to_json(view)
    for layer, other in zip(view.layers, again.layers, strict=True):
        assert torch.equal(layer.weights, other.weights)


def test_inputs_are_compressed():
    features = np.zeros((100, 100), np.float32)
    features[3, 4] = 0.5
    encoded = encode_value(features)
    assert len(json.dumps(encoded)) < 1000
    np.testing.assert_array_equal(decode_value(encoded), features)
    noise = np.random.default_rng(0).bytes(99)
    encoded = encode_value(np.frombuffer(noise, np.uint8))
    assert "base64" in encoded  # not shorter
    assert decode_value(encoded).tobytes() == noise


def test_other_json_is_rejected():
    with pytest.raises(zoo.ZooError, match="not a view of attention"):
        from_json({}, [])
