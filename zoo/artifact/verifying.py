"""Verification of artifacts: header, hashes, spec and probe."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from zoo.artifact.base import BaseSource, open_base
from zoo.artifact.hashing import HashProgress, check_files
from zoo.artifact.loading import build_model
from zoo.artifact.mapped_file import Artifact, open_artifact
from zoo.artifact.probe import compare_probe
from zoo.errors import ZooError
from zoo.registry.blueprint import format_error
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.registry.plugin_call import PluginCall
from zoo.spec.composition import resolve_device


@dataclass(frozen=True)
class Check:
    """The result of one check. The status is "ok", "failed", "absent" (format 1) or "skipped"."""

    name: str
    status: str
    detail: str

    @property
    def failed(self) -> bool:
        return self.status == "failed"


@dataclass(frozen=True)
class Verification:
    """The results of all checks in order. A failed check ends the list, except for the probe."""

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
    progress: HashProgress | None = None,
    base: BaseSource | None = None,
) -> Verification:
    """Check the header, the hashes, the base, the spec and the probe of an artifact.

    Problems with the artifact are returned as failed checks, not raised.
    """
    target = resolve_device(device)
    checks: list[Check] = []
    try:
        step = "header"
        artifact = open_artifact(path)
        checks.append(_check_header(artifact))
        step = "hashes"
        checks.append(_check_hashes(artifact, progress))
        if artifact.header.base is not None or isinstance(base, Path):
            step = "base"
            checks.append(_check_base(artifact, base))
        step = "spec"
        components = registry or default_registry()
        model = build_model(artifact, components, target, base=base)
        name = artifact.header.spec["name"]
        checks.append(Check(step, "ok", f"{len(artifact)} tensors match the spec {name}"))
    except ZooError as error:
        checks.append(Check(step, "failed", str(error)))
    else:
        checks.append(_check_probe(model, artifact.header.probe))
    return Verification(str(path), tuple(checks))


def _check_header(artifact: Artifact) -> Check:
    header = artifact.header
    if header.identity is None:
        return Check("header", "absent", "format 1 has no digest; save the model again to add it")
    files = "one file" if len(header.files) == 1 else f"{len(header.files)} shards"
    return Check("header", "ok", f"matches its digest, {files}")


def _check_hashes(artifact: Artifact, progress: HashProgress | None) -> Check:
    if not check_files(artifact.files, progress):
        return Check("hashes", "absent", "format 1 has no hashes; save the model again to add them")
    return Check("hashes", "ok", f"{len(artifact)} tensors match their sha256")


def _check_base(artifact: Artifact, source: BaseSource | None) -> Check:
    base = open_base(artifact, source)
    check_files(base.files)
    count = len((artifact.header.base or {})["tensors"])
    return Check("base", "ok", f"{count} tensors of {base.header.path} match their sha256")


def _check_probe(model: Any, probe: dict[str, Any] | None) -> Check:
    if probe is None:
        return Check("probe", "absent", "format 1 has no probe; save the model again to add it")
    if "skipped" in probe:
        return Check("probe", "skipped", str(probe["skipped"]))
    try:
        with PluginCall():
            wrong = compare_probe(model, probe)
    except Exception as error:
        return Check(
            "probe", "failed", f"the model does not run on the stored input: {format_error(error)}"
        )
    if wrong:
        return Check(
            "probe", "failed", "the outputs differ from the stored ones: " + "; ".join(wrong)
        )
    return Check("probe", "ok", "the outputs match the stored ones")
