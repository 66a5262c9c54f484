"""What scorers and alignments are held to inside an attention: the mask, and queries in turn."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from zoo.attention import Attention, recording
from zoo.interfaces import Mask
from zoo.testing.configuration import Configuration
from zoo.testing.laws.helpers import assert_close, assert_equal, length_mask, randn


def attend_stepwise(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """The context [B, T, D] with queries put one by one, each told where it stands."""
    prepared = attention.prepare(memory)
    state = attention.init_state(prepared)
    contexts = []
    for t in range(query.shape[1]):
        now = replace(mask, offset=t)
        context, state = attention(query[:, t : t + 1], prepared, now, state=state)
        contexts.append(context)
    return torch.cat(contexts, dim=1)


def _attend(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """In turn where each query depends on the one before; else all at once."""
    if attention.sequential:
        return attend_stepwise(attention, query, memory, mask)
    context: Tensor = attention(query, memory, mask)
    return context


def check_mask(config: Configuration, attention: Attention) -> None:
    """Perturbing a masked or future position changes nothing, on the path that would be taken
    and on the reference path; a row with nothing open gives no NaN."""
    query, memory = randn(2, 3, 8, seed=5), randn(2, 4, 8, seed=6)
    keys = length_mask([4, 2])
    other = memory.clone()
    other[1, 2:] = 1e3
    later = memory.clone()
    later[:, 2:] = -1e3
    gaps = torch.tensor([[True, False, True, True], [False, True, False, True]])
    between = memory.masked_fill(~gaps[..., None], 1e3)
    padding, causal = Mask(keys=keys), Mask(causal=True)
    none = Mask(keys=torch.zeros(2, 4, dtype=torch.bool))
    for how in ("as it runs", "recorded"):
        with recording(attention) if how == "recorded" else torch.no_grad():
            padded = _attend(attention, query, memory, padding)
            again = _attend(attention, query, other, padding)
            assert_equal(again, padded, f"({how}) a padded batch")
            gappy = _attend(attention, query, memory, Mask(keys=gaps))
            again = _attend(attention, query, between, Mask(keys=gaps))
            assert_equal(again, gappy, f"({how}) a batch with keys closed here and there")
            first = _attend(attention, query, memory, causal)[:, :2]
            again = _attend(attention, query, later, causal)[:, :2]
            assert_equal(again, first, f"({how}) what comes before a changed future")
            alone = _attend(attention, query[1:], memory[1:, :2], Mask())
            assert_close(padded[1:], alone, f"({how}) a padded item against the item alone", 1e-7)
            nothing = _attend(attention, query, memory, none)
            assert not nothing.isnan().any(), f"({how}) a row with nothing open gives NaN"


def check_stepwise(config: Configuration, attention: Attention) -> None:
    """One by one, queries get what they get all at once, or the first one does if it matters
    what came before; what is remembered follows its row of the batch."""
    query, memory = randn(3, 4, 8, seed=7), randn(1, 5, 8, seed=8).expand(3, -1, -1)
    for mask in (Mask(), Mask(causal=True)):
        alike = 1 if attention.sequential else 4
        together = attention(query, memory, mask)[:, :alike]
        assert_close(
            attend_stepwise(attention, query, memory, mask)[:, :alike],
            together,
            "queries in turn",
            1e-7,
        )
    prepared = attention.prepare(memory)
    state = attention.init_state(prepared)
    for t in range(3):
        _, state = attention(query[:, t : t + 1], prepared, state=state)
    parents = torch.tensor([2, 0, 0])
    expected, _ = attention(query[:, 3:], prepared, state=state)
    moved = {name: tensor.index_select(0, parents) for name, tensor in state.items()}
    context, _ = attention(query[parents, 3:], prepared, state=moved)
    assert_close(context, expected[parents], "what a reordered row sees", 1e-7)
