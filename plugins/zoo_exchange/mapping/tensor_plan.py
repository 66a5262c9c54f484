"""The planned conversion of tensors, before any of them is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from zoo.errors import Problem, SpecError, ZooError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping.copy_ops import UnequalTensorsError
from zoo_exchange.mapping.fill_value import FillValue
from zoo_exchange.mapping.rules import MapEntry

MAX_SHOWN = 4
"""How many problems of one rule are reported."""


@dataclass(frozen=True)
class TensorJob:
    """One application of an entry of a map: source names, targets, and the function between."""

    entry: MapEntry
    sources: Sequence[str]
    targets: Mapping[str, TensorMeta]
    convert: Callable[[Sequence[Tensor]], list[Tensor]]
    steps: Sequence[str]
    checks_values: bool = False

    @property
    def line(self) -> int | None:
        return self.entry.place.line if self.entry.place else None

    def run(self, read: Callable[[str], Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the tensor of each target, contiguous and in its planned dtype."""
        try:
            outputs = self.convert([read(name) for name in self.sources])
        except ZooError as error:  # of operations that check values
            raise SpecError([self.entry.problem(self._explain(error))]) from None
        for (name, meta), tensor in zip(self.targets.items(), outputs, strict=True):
            yield name, tensor.to(meta.dtype).contiguous()

    def _explain(self, error: ZooError) -> str:
        if isinstance(error, UnequalTensorsError) and error.count == len(self.sources):
            return error.message(f"'{self.sources[0]}'", f"'{self.sources[error.index]}'")
        return f"{', '.join(self.sources[:4])}: {error}"


@dataclass(frozen=True)
class TensorPlan:
    """All jobs of a map for given tensors."""

    jobs: Sequence[TensorJob]
    dropped: Sequence[str] = ()
    unused: Sequence[str] = ()
    """The places of rules that match no tensor on either side."""
    constant: Mapping[str, FillValue] = field(default_factory=dict)
    """Tensors that may be dropped only if they have this value."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """What the dropped tensors are for that are not copies, by their names in the file."""
    file_names: Mapping[str, str] = field(default_factory=dict)
    """The names of the sources, as the rules write them, and in the file."""

    @property
    def targets(self) -> dict[str, TensorMeta]:
        return {name: meta for job in self.jobs for name, meta in job.targets.items()}

    @property
    def nbytes(self) -> int:
        """The total size of the targets in bytes."""
        return sum(meta.nbytes for meta in self.targets.values())

    def run(
        self, read: Callable[[str], Tensor], progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield every target, job by job; call `progress` with the bytes of each."""
        for job in self.jobs:
            for name, tensor in job.run(read):
                yield name, tensor
                if progress:
                    progress(tensor.nbytes)

    def check_values(self, read: Callable[[str], Tensor]) -> None:
        """Raise SpecError if an operation cannot convert the values, such as unequal copies."""
        problems: list[Problem] = []
        for job in self.jobs:
            if job.checks_values:
                try:
                    deque(job.run(read), maxlen=0)
                except SpecError as error:
                    problems += error.problems
        if problems:
            raise SpecError(truncate_problems(problems))

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "target": name,
                "shape": list(meta.shape),
                "dtype": str(meta.dtype).removeprefix("torch."),
                "sources": list(job.sources),
                "operations": list(job.steps),
                "line": job.line,
            }
            for job in self.jobs
            for name, meta in job.targets.items()
        ]
        return {"tensors": rows, "dropped": list(self.dropped), "unused_rules": list(self.unused)}


def truncate_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems, a few of each rule: a rule that fails does so in every layer."""
    by_rule: dict[str, list[Problem]] = {}
    for problem in problems:
        by_rule.setdefault(problem.path, []).append(problem)
    shown = []
    for path, found in by_rule.items():
        first = found[:MAX_SHOWN] if path and len(found) > MAX_SHOWN + 1 else found
        shown += first
        if len(first) < len(found):
            message = f"and {len(found) - len(first):,} more problems of this rule"
            shown.append(replace(found[0], message=message))
    return shown
