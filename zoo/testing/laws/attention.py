"""Checks of scorers and alignments inside an attention: masks and stepwise queries."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from zoo.attention import Attention
from zoo.interfaces import Mask
from zoo.testing.configuration import Configuration
from zoo.testing.laws.helpers import assert_close, assert_equal, length_mask, randn


def attend_stepwise(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Return the context [B, T, D] with queries processed one at a time."""
    prepared = attention.prepare(memory)
    state = attention.init_state(prepared)
    contexts = []
    for t in range(query.shape[1]):
        step_mask = replace(mask, offset=t)
        context, state, _ = attention(query[:, t : t + 1], prepared, step_mask, state=state)
        contexts.append(context)
    return torch.cat(contexts, dim=1)


def _attend(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Process queries one at a time if the attention is sequential, else in parallel."""
    if attention.sequential:
        return attend_stepwise(attention, query, memory, mask)
    context: Tensor = attention(query, memory, mask).context
    return context


def check_mask(config: Configuration, attention: Attention) -> None:
    """Check that masked and future keys have no effect, and that a fully masked row is not NaN."""
    query, memory = randn(2, 3, 8, seed=5), randn(2, 4, 8, seed=6)
    keys = length_mask([4, 2])
    changed_padding = memory.clone()
    changed_padding[1, 2:] = 1e3
    changed_future = memory.clone()
    changed_future[:, 2:] = -1e3
    gaps = torch.tensor([[True, False, True, True], [False, True, False, True]])
    changed_gaps = memory.masked_fill(~gaps[..., None], 1e3)
    padding, causal = Mask(keys=keys), Mask(causal=True)
    none = Mask(keys=torch.zeros(2, 4, dtype=torch.bool))
    padded = _attend(attention, query, memory, padding)
    again = _attend(attention, query, changed_padding, padding)
    assert_equal(again, padded, "the context of a padded batch")
    expected = _attend(attention, query, memory, Mask(keys=gaps))
    again = _attend(attention, query, changed_gaps, Mask(keys=gaps))
    assert_equal(again, expected, "the context with gaps in the mask")
    first = _attend(attention, query, memory, causal)[:, :2]
    again = _attend(attention, query, changed_future, causal)[:, :2]
    assert_equal(again, first, "the context before a changed key")
    alone = _attend(attention, query[1:], memory[1:, :2], Mask())
    assert_close(padded[1:], alone, "a padded item compared with the item alone", 1e-7)
    fully_masked = _attend(attention, query, memory, none)
    assert not fully_masked.isnan().any(), "a fully masked row is NaN"


def check_stepwise(config: Configuration, attention: Attention) -> None:
    """Check that processing queries one at a time gives the same context as in parallel (if
    sequential: for the first query only), and that the state can be reordered."""
    query, memory = randn(3, 4, 8, seed=7), randn(1, 5, 8, seed=8).expand(3, -1, -1)
    for mask in (Mask(), Mask(causal=True)):
        steps = 1 if attention.sequential else 4
        parallel = attention(query, memory, mask).context[:, :steps]
        assert_close(
            attend_stepwise(attention, query, memory, mask)[:, :steps],
            parallel,
            "the context of stepwise queries",
            1e-7,
        )
    prepared = attention.prepare(memory)
    state = attention.init_state(prepared)
    for t in range(3):
        _, state, _ = attention(query[:, t : t + 1], prepared, state=state)
    parents = torch.tensor([2, 0, 0])
    expected = attention(query[:, 3:], prepared, state=state).context
    reordered = {name: tensor.index_select(0, parents) for name, tensor in state.items()}
    context = attention(query[parents, 3:], prepared, state=reordered).context
    assert_close(context, expected[parents], "the context after reordering", 1e-7)
