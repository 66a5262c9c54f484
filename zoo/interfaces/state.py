"""The state of a decoder between steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor


@dataclass(frozen=True)
class State:
    """The state of a decoder between steps; every tensor has the batch first.

    ``per_hypothesis`` changes at each step and is reordered with the hypotheses. ``per_source``
    depends on the source only, so reordering the hypotheses of one source does not copy it.
    """

    per_hypothesis: Mapping[str, Tensor]
    per_source: Mapping[str, Tensor] = field(default_factory=dict)

    def updated(self, per_hypothesis: Mapping[str, Tensor]) -> State:
        """Return a state with new per-hypothesis tensors and the same source."""
        return replace(self, per_hypothesis=per_hypothesis)

    def reorder(self, parents: Tensor) -> State:
        """Return the state whose row i is row parents[i] of this state.

        parents [B] must stay within the same source.
        """
        return self.updated(_select_rows(self.per_hypothesis, parents))

    def repeat(self, times: int) -> State:
        """Repeat each row ``times`` times consecutively, for several hypotheses per source."""
        return replace(
            self,
            per_hypothesis=_repeat_rows(self.per_hypothesis, times),
            per_source=_repeat_rows(self.per_source, times),
        )


def _select_rows(tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: tensor.index_select(0, rows) for name, tensor in tensors.items()}


def _repeat_rows(tensors: Mapping[str, Tensor], times: int) -> dict[str, Tensor]:
    return {name: tensor.repeat_interleave(times, dim=0) for name, tensor in tensors.items()}
