"""What scorers and alignments are held to inside an attention: the mask, and queries in turn."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from zoo.attention import Attention, recording
from zoo.interfaces import Mask
from zoo.testing.laws.tensors import noise, ragged, same, untouched
from zoo.testing.subject import Subject


def in_turn(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """The context [B, T, D] with queries put one by one, each told where it stands."""
    prepared = attention.prepare(memory)
    state = attention.start(prepared)
    contexts = []
    for t in range(query.shape[1]):
        now = replace(mask, offset=t)
        context, state = attention.step(query[:, t : t + 1], prepared, state, now)
        contexts.append(context)
    return torch.cat(contexts, dim=1)


def _answers(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """In turn where each query depends on the one before; else all at once."""
    if attention.sequential:
        return in_turn(attention, query, memory, mask)
    context: Tensor = attention(query, memory, mask)
    return context


def obeys_mask(subject: Subject, attention: Attention) -> None:
    """Perturbing a masked or future position changes nothing, on the path that would be taken
    and on the reference path; a row with nothing open gives no NaN."""
    query, memory = noise(2, 3, 8, seed=5), noise(2, 4, 8, seed=6)
    keys = ragged([4, 2])
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
            padded = _answers(attention, query, memory, padding)
            again = _answers(attention, query, other, padding)
            untouched(again, padded, f"({how}) a padded batch")
            gappy = _answers(attention, query, memory, Mask(keys=gaps))
            again = _answers(attention, query, between, Mask(keys=gaps))
            untouched(again, gappy, f"({how}) a batch with keys closed here and there")
            first = _answers(attention, query, memory, causal)[:, :2]
            again = _answers(attention, query, later, causal)[:, :2]
            untouched(again, first, f"({how}) what comes before a changed future")
            alone = _answers(attention, query[1:], memory[1:, :2], Mask())
            same(padded[1:], alone, f"({how}) a padded item against the item alone", 1e-7)
            nothing = _answers(attention, query, memory, none)
            assert not nothing.isnan().any(), f"({how}) a row with nothing open gives NaN"


def answers_in_turn(subject: Subject, attention: Attention) -> None:
    """One by one, queries get what they get all at once, or the first one does if it matters
    what came before; what is remembered follows its row of the batch."""
    query, memory = noise(3, 4, 8, seed=7), noise(1, 5, 8, seed=8).expand(3, -1, -1)
    for mask in (Mask(), Mask(causal=True)):
        alike = 1 if attention.sequential else 4
        together = attention(query, memory, mask)[:, :alike]
        same(in_turn(attention, query, memory, mask)[:, :alike], together, "queries in turn", 1e-7)
    prepared = attention.prepare(memory)
    state = attention.start(prepared)
    for t in range(3):
        _, state = attention.step(query[:, t : t + 1], prepared, state)
    parents = torch.tensor([2, 0, 0])
    expected, _ = attention.step(query[:, 3:], prepared, state)
    moved = {name: tensor.index_select(0, parents) for name, tensor in state.items()}
    context, _ = attention.step(query[parents, 3:], prepared, moved)
    same(context, expected[parents], "what a reordered row sees", 1e-7)
