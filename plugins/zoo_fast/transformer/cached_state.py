"""State of a Transformer decoder whose caches are not reordered.

Notation: R rows (hypotheses), W rows per source, N positions, D width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import State
from zoo_fast.generation.state_items import reordered_table, select_items, select_rows

SLOTS = "slots"
"""Name of the index of caches in a state: the row of the source at each position, [R, N]."""


def _per_hypothesis(state: CachedState) -> dict[str, Tensor]:
    """Return the caches in the order of the hypotheses, as the reference step takes them."""
    slots = state.rows[SLOTS].long()  # [R, N]
    per_hypothesis = {"at": state.rows["at"]}
    W = state.rows_per_source()
    if W == 1:  # the caches are in order
        return {**per_hypothesis, **state.history}
    first = torch.arange(len(slots), device=slots.device) // W * W
    source_rows, at = first[:, None] + slots, torch.arange(slots.shape[1], device=slots.device)
    for name, cache in state.history.items():
        # [R, N, Hkv, D] -> [R, Hkv, N, D]
        per_hypothesis[name] = cache[source_rows, :, at].transpose(1, 2).contiguous()
    return per_hypothesis


def _per_source(state: CachedState) -> Mapping[str, Tensor]:
    """Return the tensors of the source for each hypothesis, as the reference step takes them."""
    W = state.rows_per_source()
    return state.shared if W == 1 else _repeat(state.shared, W)


@dataclass(frozen=True, kw_only=True)
class CachedState(State):
    """State of a fused decoding step; the fields of `State` are computed, so that the reference
    step can process it too.

    Args:
        rows: position "at" [R] and slots [R, N] of each hypothesis, reordered with the hypotheses.
        history: keys and values of the previous steps, one row per hypothesis, which are repeated
            but not reordered: the slots name the row of each step.
        shared: tensors with one row per source, neither repeated nor reordered; the source of a
            hypothesis follows from the number of rows.
        tables: tensors that do not depend on the batch.
    """

    per_hypothesis: ClassVar[Any] = property(_per_hypothesis)  # type: ignore[misc]
    per_source: ClassVar[Any] = property(_per_source)  # type: ignore[misc]
    rows: Mapping[str, Tensor]
    history: Mapping[str, Tensor] = field(default_factory=dict)
    shared: Mapping[str, Tensor] = field(default_factory=dict)
    tables: Mapping[str, Tensor] = field(default_factory=dict)

    def rows_per_source(self) -> int:
        """Return the number of hypotheses of each source, W."""
        return len(self.rows["at"]) // len(self.shared["mask"])

    def updated(self, per_hypothesis: Mapping[str, Tensor]) -> CachedState:
        """Return the state after a reference step, whose caches are in the order of the rows."""
        slots = self.rows[SLOTS]
        own = torch.arange(len(slots), device=slots.device) % self.rows_per_source()
        own_slots = own.to(slots.dtype)[:, None].expand_as(slots).contiguous()
        return replace(
            self,
            rows={"at": per_hypothesis["at"], SLOTS: own_slots},
            history={name: per_hypothesis[name] for name in self.history},
        )

    def reorder(self, parents: Tensor) -> CachedState:
        # The hypotheses of a source have the same position.
        return replace(self, rows={**self.rows, **select_rows({SLOTS: self.rows[SLOTS]}, parents)})

    def repeat(self, times: int) -> CachedState:
        return replace(self, rows=_repeat(self.rows, times), history=_repeat(self.history, times))


def _no_reference(state: RaggedState) -> Mapping[str, Tensor]:
    raise ZooError(
        "the rows are at different positions, which only the kernels of the decoding step process; "
        "attach hooks and recorders before generation, not during it"
    )


@dataclass(frozen=True, kw_only=True)
class RaggedState(CachedState):
    """State after prompts of different lengths: each row has its own position.

    The reference step, in which all rows have the same position, cannot process it.
    """

    per_hypothesis: ClassVar[Any] = property(_no_reference)  # type: ignore[misc]

    @classmethod
    def of(cls, state: CachedState) -> RaggedState:
        """Return a state with the tensors of another one."""
        return cls(**{each.name: getattr(state, each.name) for each in fields(state)})


@select_items.register(RaggedState)
@select_items.register(CachedState)
def _select(state: CachedState, items: Tensor, rows: Tensor) -> CachedState:
    return replace(
        state,
        rows=select_rows(state.rows, rows),
        history=select_rows(state.history, rows),
        shared=select_rows(state.shared, items),
    )


@reordered_table.register(RaggedState)
@reordered_table.register(CachedState)
def _slots(state: CachedState) -> Tensor:
    return state.rows[SLOTS]


def _repeat(tensors: Mapping[str, Tensor], times: int) -> dict[str, Tensor]:
    """Repeat the rows of tensors, those of equal shape in one kernel."""
    groups: dict[tuple[torch.Size, torch.dtype], list[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault((tensor.shape, tensor.dtype), []).append(name)
    repeated = dict(tensors)  # in the same order
    for (shape, _), names in groups.items():
        rows, width = shape[0], math.prod(shape[1:])
        own = [tensors[name].reshape(rows, 1, width).expand(rows, times, width) for name in names]
        results = torch.stack(own).view(len(names), rows * times, *shape[1:])
        repeated.update(zip(names, results.unbind(), strict=True))
    return repeated
