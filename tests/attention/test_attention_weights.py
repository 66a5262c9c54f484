"""Attention weights for the caller, without a recorder."""

import pytest
import torch

from zoo import recording
from zoo.plugin import Attention, Blueprint, Mask
from zoo_alignment.local_m import LocalM
from zoo_alignment.monotonic import Monotonic
from zoo_alignment.soft import Soft
from zoo_location.location import Location
from zoo_transformer.scaled_dot import ScaledDot

ALIGNMENTS = {
    "soft": Blueprint.of(Soft),
    "monotonic": Blueprint.of(Monotonic, mode="soft"),
    "local-m": Blueprint.of(LocalM),
}


def build(scorer, align, heads):
    torch.manual_seed(0)
    attention = Attention(
        query_dim=4, key_dim=4, scorer=Blueprint.of(scorer), align=align, heads=heads
    )
    return attention.double().eval()


def inputs():
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    states = torch.randn(2, 5, 4, generator=generator, dtype=torch.float64)
    return query, states, Mask(keys=torch.arange(5) < torch.tensor([[5], [3]]))


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("align", ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_weights_equal_the_recorded_ones(align, heads):
    attention, (query, states, mask) = build(ScaledDot, align, heads), inputs()
    expected = attention(query, states, mask).context
    with recording(attention) as log:
        attention(query, states, mask)
    context, _, weights = attention(query, states, mask, return_weights=True)
    torch.testing.assert_close(context, expected)
    assert torch.equal(weights, log[""][0])
    assert weights.requires_grad == (heads > 1 or align.cls is Monotonic)  # projections, or r
    assert not attention.recorders


@pytest.mark.parametrize("scorer", [ScaledDot, Location])
@pytest.mark.parametrize("align", ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_one_step_returns_context_state_and_weights(scorer, align):
    attention, (query, states, mask) = build(scorer, align, 1), inputs()
    prepared = attention.prepare(states)
    state = other_state = attention.init_state(prepared)
    for t in range(3):
        step = query[:, t : t + 1]
        expected, state, _ = attention(step, prepared, mask, state=state)
        context, other_state, weights = attention(
            step, prepared, mask, state=other_state, return_weights=True
        )
        torch.testing.assert_close(context, expected)
        torch.testing.assert_close(weights[:, 0] @ states, context)
        assert state.keys() == other_state.keys()
        for name in state:
            torch.testing.assert_close(state[name], other_state[name])
