import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo_memory.position_layer import PositionLayer


@pytest.mark.parametrize(
    ("activation", "f"), [("tanh", torch.tanh), ("relu", F.relu), ("gelu", F.gelu)]
)
def test_known_values_at_each_position(activation, f):
    layer = PositionLayer(input_dim=2, dim=3, activation=activation)
    weight, bias = torch.tensor([[1.0, 0], [0, 2], [1, 1]]), torch.tensor([0.5, 0, 0])
    layer.load_state_dict({"map.weight": weight, "map.bias": bias})
    found = layer(torch.tensor([[[1.0, -2.0]]]))
    torch.testing.assert_close(found, f(torch.tensor([[[1.5, -4.0, -1.0]]])))


def test_a_norm_of_the_result_and_no_biases():
    layer = PositionLayer(input_dim=4, bias=False, norm_eps=0.25, norm_bias=False)
    assert list(layer.state_dict()) == ["map.weight", "norm.weight"]
    states = torch.randn(2, 3, 4)
    expected = F.layer_norm(F.gelu(states @ layer.map.weight.T), (4,), eps=0.25)
    torch.testing.assert_close(layer(states), expected)


def test_a_tagger_with_an_inner_layer():
    model = {
        "type": "tagger",
        "source": {"type": "token", "vocab": 9, "dim": 4},
        "encoder": {"type": "gru", "hidden": 4},
        "labels": 3,
        "inner": {"dim": 5},
    }
    tagger = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()
    source = torch.tensor([[1, 2, 3]])
    states = tagger.encoder(tagger.source(source), tagger.source.mask(source)).states
    logits = tagger({"source": source, "target": torch.zeros_like(source)}).logits
    torch.testing.assert_close(logits, tagger.out(tagger.inner(states)))
