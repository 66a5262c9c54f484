"""The state of a decoder for some items of its batch or in another order, by its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from zoo.plugin import State
from zoo_fast.by_class import ByClass


@ByClass
def select_items(state: State, items: Tensor, rows: Tensor) -> State | None:
    """Return the state of some items, given their indices [n] and those of their hypotheses
    [n * W]."""


@ByClass
def reordered_table(state: State) -> Tensor | None:
    """Return the small tensor [B * W, n] whose rows `reorder` puts in the order of the hypotheses,
    if that is all it does."""


@select_items.register(State)
def _select(state: State, items: Tensor, rows: Tensor) -> State:
    return replace(
        state,
        per_hypothesis=select_rows(state.per_hypothesis, rows),
        per_source=select_rows(state.per_source, rows),
    )


def select_rows(tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    """Return some rows of each tensor."""
    return {name: tensor.index_select(0, rows) for name, tensor in tensors.items()}
