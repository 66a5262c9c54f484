"""The state of a run between two steps, except tensors."""

from __future__ import annotations

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
        values: results of the last evaluation.
        best: best value of the monitored result, its step and all values; None if there is none.
        stale: number of evaluations since the best.
        scores: monitored result at each step with a checkpoint that was evaluated.
        log_bytes: size of the log.
        schedule: state of the schedule.
    """

    step: int = 0
    epoch: int = 0
    index: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    stale: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    log_bytes: int = 0
    schedule: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunState:
        return cls(**data)

    def observe(self, values: dict[str, float], monitor: str, *, lower: bool) -> bool:
        """Take the results of an evaluation, and return whether the monitored one is the best."""
        self.values = values
        value = values[monitor]
        self.scores[str(self.step)] = value
        is_best = self.best is None or (
            value < self.best["value"] if lower else value > self.best["value"]
        )
        if is_best:
            self.best = {
                "name": monitor,
                "value": value,
                "step": self.step,
                "values": values,
            }
        self.stale = 0 if is_best else self.stale + 1
        return is_best

    def best_steps(self, count: int, *, lower: bool) -> list[int]:
        """Return the steps of the best checkpoints, best first; of equal ones the earliest."""
        sign = 1 if lower else -1
        ranked = sorted(self.scores, key=lambda step: (sign * self.scores[step], int(step)))
        return [int(step) for step in ranked[:count]]
