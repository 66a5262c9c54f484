import pytest
import torch
from torch.nn.functional import layer_norm

from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm
from zoo_transformer.normed_pooling import NormedPoolingEncoder
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_encoder import TransformerEncoder


def build(pooling):
    torch.manual_seed(0)
    attention = Blueprint.of(
        Attention, scorer=Blueprint.of(ScaledDot), align=Blueprint.of(Soft), heads=2
    )
    encoder = Blueprint.of(
        TransformerEncoder,
        layers=1,
        attention=attention,
        feed_forward=Blueprint.of(FeedForward, hidden=12),
        norm=Blueprint.of(Norm, place="pre", final=False),
    )
    return NormedPoolingEncoder(input_dim=8, encoder=encoder, pooling=pooling)


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["first", "mean", "rest"])
def test_the_summary_is_the_norm_of_a_pooled_state(pooling):
    encoder = build(pooling)
    encoder.norm.weight.normal_()
    x = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    memory = encoder(x, mask)
    states = encoder.encoder(x, mask).states
    assert torch.equal(memory.states, states)
    first = {"first": 0, "mean": 0, "rest": 1}[pooling]
    ends = [1, 1] if pooling == "first" else [5, 3]
    pooled = torch.stack(
        [row[first:end].mean(dim=0) for row, end in zip(states, ends, strict=True)]
    )
    expected = layer_norm(pooled, (8,), encoder.norm.weight, encoder.norm.bias)
    torch.testing.assert_close(memory.summary, expected)


def test_names_of_the_weights():
    names = {name.partition(".")[0] for name, _ in build("first").named_parameters()}
    assert names == {"encoder", "norm"}
