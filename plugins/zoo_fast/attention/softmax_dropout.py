"""Alignments whose weights kernels compute."""

from __future__ import annotations

from zoo.plugin import Alignment
from zoo_alignment.soft import Soft
from zoo_fast.active_dropout import active_p
from zoo_fast.by_class import ByClass


@ByClass
def softmax_dropout(align: Alignment) -> float | None:
    """Return the dropout probability of the weights in the present mode, 0 in evaluation, if the
    weights are the softmax of the masked scores; else None."""


@softmax_dropout.register(Soft)
def _soft(align: Soft) -> float | None:
    if align.sink is not None:
        return None
    return active_p(align.dropout)


def why_not_softmax(align: Alignment) -> str | None:
    """Return why kernels do not compute the weights, or None if they do."""
    if not softmax_dropout.knows(align):
        return f"alignment '{align.name}' is not known as a softmax"
    return None if softmax_dropout(align) is not None else "the softmax has a sink"
