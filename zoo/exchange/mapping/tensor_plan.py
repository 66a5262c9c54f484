"""The planned conversion of tensors, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from zoo.errors import ZooError
from zoo.exchange.mapping.fill_value import FillValue
from zoo.interfaces.tensors import TensorMeta


@dataclass(frozen=True)
class TensorJob:
    """One application of a rule: source names, targets, and the function between them."""

    sources: Sequence[str]
    targets: Mapping[str, TensorMeta]
    convert: Callable[[Sequence[Tensor]], list[Tensor]]
    steps: Sequence[str]
    line: int | None

    def run(self, read: Callable[[str], Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the tensor of each target, contiguous and in its planned dtype."""
        try:
            outputs = self.convert([read(name) for name in self.sources])
        except ZooError as error:  # equality is tested here only
            raise ZooError(f"{', '.join(self.sources[:4])}: {error}") from None
        for (name, meta), tensor in zip(self.targets.items(), outputs, strict=True):
            yield name, tensor.to(meta.dtype).contiguous()


@dataclass(frozen=True)
class TensorPlan:
    """All jobs of a map for given tensors."""

    jobs: Sequence[TensorJob]
    dropped: Sequence[str] = ()
    unused: Sequence[str] = ()
    """The places of rules that match no tensor on either side."""
    constant: Mapping[str, FillValue] = field(default_factory=dict)
    """Tensors that may be dropped only if they have this value."""

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
