"""What an import loses of a file's names, dtypes and shapes, so that an export restores it.

Prefixes and endings of names are optional in a file, floating-point parameters get one dtype, and a
few operations accept several shapes. A map alone does not determine what the file had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from zoo.errors import Problem, SpecError, ZooError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping.planner import FLOAT_DTYPES, TensorMetas, plan_inverse
from zoo_exchange.mapping.rules import TensorMap
from zoo_exchange.mapping.tensor_plan import TensorJob, TensorPlan, truncate_problems

MAX_ORIGINALS = 20_000
"""Maximum number of entries, so that the header of the model file can be read."""


@dataclass(frozen=True)
class Originals:
    """Where a file differs from the inverse of its map; keys are names as in the rules."""

    names: Mapping[str, str] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    absent: Sequence[str] = ()
    """Tensors that the map writes, but that the file did not have."""
    complete: bool = True
    """False if the entries were too many to be stored."""

    @classmethod
    def of(
        cls, tensor_map: TensorMap, plan: TensorPlan, sources: TensorMetas, *, keep_dtypes: bool
    ) -> Originals:
        """Compare the sources of an import with the results of its inverse.

        Args:
            tensor_map: the map of the import.
            plan: the import.
            sources: the tensors of the file.
            keep_dtypes: whether an export restores floating-point dtypes.
        """
        jobs = plan_inverse(tensor_map, plan.targets)
        exported = {name: (job, meta) for job in jobs for name, meta in job.targets.items()}
        names = {name: file for name, file in plan.file_names.items() if file != name}
        dtypes, shapes = {}, {}
        own_dtypes = {meta.dtype for meta in plan.targets.values()}
        for name, (job, meta) in exported.items():
            original = sources[plan.file_names[name]] if name in plan.file_names else meta
            if original.shape != meta.shape:
                shapes[name] = list(original.shape)
            # Another dtype than the model's is set by the map.
            restored = meta.dtype in own_dtypes and keep_dtypes and _is_float(original, meta)
            if original.dtype != meta.dtype and (restored or not job.sources):
                dtypes[name] = str(original.dtype).removeprefix("torch.")
        absent = [name for name in exported if name not in plan.file_names]
        if len(names) + len(dtypes) + len(shapes) + len(absent) > MAX_ORIGINALS:
            return cls(complete=False)
        return cls(names, dtypes, shapes, absent)

    @classmethod
    def from_json(cls, data: Any) -> Originals:
        """Return what `as_json` has returned; raise ZooError for anything else."""
        try:
            originals = TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise ZooError(f"'originals' in the provenance is not valid: {reason}") from None
        for name in originals.dtypes.values():
            if not isinstance(getattr(torch, name, None), torch.dtype):
                raise ZooError(f"'originals' in the provenance is not valid: no dtype '{name}'")
        return originals

    def as_json(self) -> dict[str, Any]:
        """Return the entries as JSON values; empty if there are none."""
        return {key: value for key, value in asdict(self).items() if value != _EMPTY[key]}

    def restore(self, plan: TensorPlan, *, keep_dtypes: bool) -> TensorPlan:
        """Return an export with the names, dtypes and tensors of the file that was imported.

        Raises:
            SpecError: a tensor would have another shape than in the file.
        """
        if not self.complete:
            raise ZooError(
                "the import changed the names or dtypes of too many tensors to restore them"
            )
        problems: list[Problem] = []
        jobs = []
        for job in plan.jobs:
            targets = {}
            for name, meta in job.targets.items():
                problems += self._shape_problems(job, name, meta)
                dtype = self.dtypes.get(name) if keep_dtypes or not job.sources else None
                restored = replace(meta, dtype=getattr(torch, dtype)) if dtype else meta
                targets[self.names.get(name, name)] = restored
            if job.sources or not set(self.absent).issuperset(job.targets):
                jobs.append(replace(job, targets=targets))
        names = [name for job in jobs for name in job.targets]
        if len(set(names)) < len(names):
            raise ZooError("two tensors of the export would have the same name")
        if problems:
            raise SpecError(truncate_problems(problems))
        return replace(plan, jobs=jobs)

    def _shape_problems(self, job: TensorJob, name: str, meta: TensorMeta) -> list[Problem]:
        shape = self.shapes.get(name)
        if shape is None or tuple(shape) == meta.shape:
            return []
        return [
            job.entry.problem(
                f"'{name}' would have shape {list(meta.shape)}, but it has {list(shape)} in the "
                "file that was imported"
            )
        ]


_EMPTY = asdict(Originals())


def _is_float(*metas: TensorMeta) -> bool:
    return all(meta.dtype in FLOAT_DTYPES for meta in metas)
