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

    A decoder can keep tensors out of both operations. ``history`` holds values of the previous
    steps, one row per hypothesis, which are repeated but not reordered: the decoder keeps an index
    of the row of each step. ``shared`` has one row per source and is neither repeated nor
    reordered: the decoder finds the source of a hypothesis from the number of rows. ``tables`` do
    not depend on the batch.
    """

    per_hypothesis: Mapping[str, Tensor]
    per_source: Mapping[str, Tensor] = field(default_factory=dict)
    history: Mapping[str, Tensor] = field(default_factory=dict)
    shared: Mapping[str, Tensor] = field(default_factory=dict)
    tables: Mapping[str, Tensor] = field(default_factory=dict)

    def updated(self, per_hypothesis: Mapping[str, Tensor]) -> State:
        """Return a state with new per-hypothesis tensors and the same source."""
        return replace(self, per_hypothesis=per_hypothesis)

    def reorder(self, parents: Tensor) -> State:
        """Return the state whose row i is row parents[i] of this state.

        parents [B] must stay within the same source.
        """
        return self.updated(_select_rows(self.per_hypothesis, parents))

    def select(self, sources: Tensor, rows: Tensor) -> State:
        """Return the state of some sources, given their indices and those of their hypotheses."""
        return State(
            _select_rows(self.per_hypothesis, rows),
            _select_rows(self.per_source, rows),
            _select_rows(self.history, rows),
            _select_rows(self.shared, sources),
            self.tables,
        )

    def repeat(self, times: int) -> State:
        """Repeat each row ``times`` times consecutively, for several hypotheses per source."""

        def expand(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {k: v.repeat_interleave(times, dim=0) for k, v in tensors.items()}

        return replace(
            self,
            per_hypothesis=expand(self.per_hypothesis),
            per_source=expand(self.per_source),
            history=expand(self.history),
        )


def _select_rows(tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: tensor.index_select(0, rows) for name, tensor in tensors.items()}
