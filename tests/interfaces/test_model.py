"""Loading of weights into models with shared tensors."""

import pytest
import torch
from safetensors.torch import load_file

import zoo


def test_the_file_of_a_saved_model_is_a_complete_state_dict(tmp_path):
    model, other = (zoo.compose("transformer-tiny", seed=seed) for seed in (0, 1))
    weights = load_file(zoo.save(model, tmp_path / "model.safetensors"))
    assert len(weights) < len(model.state_dict())  # source, target and output share a tensor
    other.load_state_dict(weights)
    wrapped = torch.nn.Sequential(zoo.compose("transformer-tiny", seed=2))
    wrapped.load_state_dict({f"0.{name}": tensor for name, tensor in weights.items()})
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
        assert torch.equal(wrapped[0].state_dict()[name], tensor)
    assert other.decoder.output.embedding.table.weight is other.source.table.weight


def test_missing_and_unknown_weights_are_reported(tmp_path):
    model = zoo.compose("transformer-tiny")
    weights = load_file(zoo.save(model, tmp_path / "model.safetensors"))
    shared = weights.pop("source.table.weight")
    with pytest.raises(RuntimeError, match=r"Missing key.*source\.table\.weight.*output"):
        model.load_state_dict(weights)
    weights |= {"decoder.embedding.table.weight": shared, "other": shared}
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"other"') as caught:
        model.load_state_dict(weights)
    assert "Missing" not in str(caught.value)
