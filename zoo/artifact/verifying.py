"""Is an artifact what it was, and does it still answer as it did?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from zoo.artifact.hashing import Progress, check_files
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.artifact.probe import compare_probe
from zoo.artifact.versions import resolve_versions
from zoo.artifact.weights import load_weights
from zoo.errors import ZooError
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_device


@dataclass(frozen=True)
class Check:
    """One thing looked at: it holds, it failed, or there was nothing to look at."""

    name: str
    status: str
    detail: str

    @property
    def failed(self) -> bool:
        return self.status == "failed"


@dataclass(frozen=True)
class Verification:
    """What was found, in the order it was looked for; after a failure of reading, no further."""

    path: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not any(check.failed for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {"file": self.path, "ok": self.ok, "checks": [vars(check) for check in self.checks]}


def verify(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    registry: ComponentRegistry | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Header, hashes, spec and golden probe of an artifact, whatever is wrong with it.

    A check has the status "ok", "failed", "absent" (files of format 1) or "skipped".
    """
    place = resolve_device(device)
    checks: list[Check] = []
    try:
        step = "header"
        artifact = open_artifact(path)
        checks.append(_check_header(artifact))
        step = "hashes"
        checks.append(_check_hashes(artifact, progress))
        step = "spec"
        spec, tensors = resolve_versions(artifact.header, artifact, registry or default_registry())
        model = load_weights(artifact.header.path, spec, tensors, device=place)
        checks.append(Check(step, "ok", f"{len(artifact)} tensors fit {spec.name}"))
    except ZooError as error:
        checks.append(Check(step, "failed", str(error)))
    else:
        checks.append(_check_probe(model, artifact.header.probe))
    return Verification(str(path), tuple(checks))


def _check_header(artifact: Artifact) -> Check:
    header = artifact.header
    if header.identity is None:
        return Check("header", "absent", "format 1 has no digest; save the model again for one")
    files = "one file" if len(header.files) == 1 else f"{len(header.files)} shards"
    return Check("header", "ok", f"as it was written, {files}")


def _check_hashes(artifact: Artifact, progress: Progress | None) -> Check:
    if not check_files(artifact.files, progress):
        return Check("hashes", "absent", "format 1 has no hashes; save the model again for them")
    return Check("hashes", "ok", f"{len(artifact)} tensors are as they were written")


def _check_probe(model: Any, probe: dict[str, Any] | None) -> Check:
    if probe is None:
        return Check("probe", "absent", "format 1 has no probe; save the model again for one")
    if "skipped" in probe:
        return Check("probe", "skipped", str(probe["skipped"]))
    try:
        wrong = compare_probe(model, probe)
    except Exception as error:
        return Check("probe", "failed", f"the model no longer runs on it: {format_error(error)}")
    if wrong:
        return Check("probe", "failed", "the model answers otherwise: " + "; ".join(wrong))
    return Check("probe", "ok", "the model answers as it did when it was saved")
