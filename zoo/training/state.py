"""The state of a run between two steps, except tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class RunState:
    """Numbers that change during a run; saved as JSON in each checkpoint.

    Attributes:
        step: number of updates of the weights.
        epoch, index: position in the data: the epoch, and the number of its batches used.
        seconds: time of training so far.
        losses, norms: values since the last line of the log.
        values: results of the last evaluation that are finite numbers.
        best: the best evaluation: name and value of the first monitored result, all monitored
            results, the step and all values; None if there is none.
        records: best value of each monitored result, not all from the same evaluation.
        stale: number of evaluations since one that reached a record.
        scores: first monitored result at each step with a checkpoint that was evaluated.
        log_bytes: size of the log.
        schedule: state of the schedule.
        unobserved: whether the evaluation of this step is the best, as long as the model has not
            observed it: a checkpoint has the model that was evaluated. Otherwise None.
        phase_begins: whether the next evaluation is the first one of a phase: the model has
            changed since the last one, so they are not compared.
        skipped: the examples that were left out, see `Batches.skipped_state`.
    """

    step: int = 0
    epoch: int = 0
    index: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    records: dict[str, float] = field(default_factory=dict)
    stale: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    log_bytes: int = 0
    schedule: dict[str, Any] = field(default_factory=dict)
    unobserved: bool | None = None
    phase_begins: bool = False
    skipped: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunState:
        state = cls(**data)
        if state.best is not None:  # checkpoints of previous versions have one monitored result
            state.best.setdefault("monitored", {state.best["name"]: state.best["value"]})
            state.records = state.records or dict(state.best["monitored"])
        return state

    def observe(self, values: dict[str, float], lower: Mapping[str, bool]) -> bool:
        """Take the results of an evaluation, and return whether it is the best.

        One monitored result must be better than its record. Of several, as in the code of
        Veličković et al. 2018, each must reach its record: equal it, or be better.

        A monitored result that is not a finite number is worse than all others.

        Args:
            lower: the names of the monitored results, and whether lower values are better.
        """
        if self.phase_begins:
            self.best, self.records, self.scores, self.phase_begins = None, {}, {}, False
        self.values = values = finite_values(values)
        monitored = {name: values[name] for name in lower if name in values}
        first = next(iter(lower))
        if first in values:
            self.scores[str(self.step)] = values[first]
        reached = {
            name: value
            for name, value in monitored.items()
            if name not in self.records
            or (value < self.records[name] if lower[name] else value > self.records[name])
            or (value == self.records[name] and len(lower) > 1)
        }
        self.records |= reached
        is_best = len(reached) == len(lower)
        if is_best:
            self.best = {
                "name": first,
                "value": values[first],
                "monitored": monitored,
                "step": self.step,
                "values": values,
            }
        self.stale = 0 if reached else self.stale + 1
        self.unobserved = is_best
        return is_best

    def begin_phase(self) -> None:
        """Compare the next evaluation with no earlier one; the best one is kept until then."""
        self.phase_begins, self.stale = True, 0

    def best_steps(self, count: int, lower: Mapping[str, bool]) -> list[int]:
        """Return the steps of the best checkpoints: the best, then by the first monitored result.

        Of equal ones the earliest is first.
        """
        sign = 1 if next(iter(lower.values())) else -1
        best = self.best["step"] if self.best else None

        def rank(step: str) -> tuple[bool, float, int]:
            return int(step) != best, sign * self.scores[step], int(step)

        return [int(step) for step in sorted(self.scores, key=rank)[:count]]


def finite_values(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values that are finite numbers; others cannot be compared or stored as JSON."""
    return {name: value for name, value in values.items() if math.isfinite(value)}
