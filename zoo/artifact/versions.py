"""Comparison of the components of an artifact with the installed ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from zoo.artifact.header import Header
from zoo.artifact.migration import OPTIONAL_SECTIONS, OutdatedComponents, migrate, section_of
from zoo.errors import ArtifactError, SpecError, ZooWarning
from zoo.interfaces import Component, Model
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.providers import Provider, missing_component, pip_command, reference, used_by
from zoo.spec.spec import Spec, load_spec


@dataclass(frozen=True)
class ResolvedArtifact:
    """The spec and the tensors of an artifact, as the installed components define them.

    Attributes:
        unavailable: sections of the stored spec with a component that is not installed or has an
            incompatible version. They are not in `spec`.
    """

    spec: Spec
    tensors: Mapping[str, Tensor]
    header: Header
    unavailable: tuple[str, ...] = ()

    def attach_unavailable(self, model: Model) -> None:
        """Add the unavailable sections to the model's metadata, as they are stored."""
        if model.spec is None or not self.unavailable:
            return
        stored = {section: self.header.spec[section] for section in self.unavailable}
        known = {(row["kind"], reference(row)): row for row in model.providers}
        for row in used_by(stored, self.header.providers):
            known.setdefault((row["kind"], reference(row)), row)
        paths = [row for row in self.header.component_paths if section_of(row) in self.unavailable]
        order = ("model", *OPTIONAL_SECTIONS)
        model.spec = {**model.spec, **stored}
        model.providers = tuple(known[key] for key in sorted(known))
        model.component_paths = tuple(
            sorted([*model.component_paths, *paths], key=lambda row: order.index(section_of(row)))
        )


def resolve_versions(
    header: Header, tensors: Mapping[str, Tensor], registry: ComponentRegistry
) -> ResolvedArtifact:
    """Compare the components with the installed ones, and migrate older ones.

    Sections other than `model` are left out if a component they use is not installed or has an
    incompatible version.
    """
    data = available_spec(header, registry)
    available = replace(header, spec=data)
    unavailable = tuple(section for section in header.spec if section not in data)
    outdated = _find_outdated(available, registry)
    current_tensors: Mapping[str, Tensor] = dict(tensors)
    if outdated:
        data, current_tensors = migrate(available, current_tensors, outdated)
    try:
        spec = load_spec(data, registry=registry)
    except SpecError as error:
        raise ArtifactError(
            f"{header.path}: the spec is not valid with the installed components:\n{error}"
        ) from None
    listed = {(row["kind"], reference(row)) for row in header.providers}
    for row in spec.providers():
        if not outdated and (row["kind"], reference(row)) not in listed:
            raise ArtifactError(
                f"{header.path}: the list of providers ('lock' in the header) lacks {row['kind']} "
                f"'{row['name']}', which the spec uses; the file is damaged or was edited"
            )
    return ResolvedArtifact(spec, current_tensors, header, unavailable)


def available_spec(header: Header, registry: ComponentRegistry) -> dict[str, Any]:
    """Return the stored spec without sections whose components are not installed.

    Raises ArtifactError if a component of the model is not installed.
    """
    users = {s: used_by(header.spec.get(s), header.providers) for s in OPTIONAL_SECTIONS}
    model = used_by(header.spec.get("model"), header.providers)
    unavailable: set[str] = set()
    for row in header.providers:
        message = missing_component(row, registry) or _version_problem(row, registry)
        if message:
            sections = [section for section, rows in users.items() if row in rows]
            if row in model or not sections:
                raise ArtifactError(f"{header.path}: {message}")
            unavailable.update(sections)
    return {key: value for key, value in header.spec.items() if key not in unavailable}


def _version_problem(row: Provider, registry: ComponentRegistry) -> str | None:
    """Return why a component of another version cannot be migrated, or None if it can."""
    entry = registry.get(row["kind"], reference(row))
    version, installed = row["version"], entry.cls.version
    base = getattr(Component.migrate, "__func__", None)
    if version == installed:
        return None
    if 1 <= version < installed and getattr(entry.cls.migrate, "__func__", None) is not base:
        return None
    lacking = f", which cannot migrate from {version}" if 1 <= version < installed else ""
    return (
        f"saved with version {version} of {entry.kind} '{entry.name}', but distribution "
        f"{entry.distribution} {entry.distribution_version} has version {installed}{lacking}; "
        f"install the distribution it was saved with: {pip_command(row)}"
    )


def _find_outdated(header: Header, registry: ComponentRegistry) -> OutdatedComponents:
    """Return the components with a newer installed version. Warn if distributions differ."""
    outdated: OutdatedComponents = {}
    releases = set()
    for row in used_by(header.spec, header.providers):
        entry = registry.get(row["kind"], reference(row))
        if entry.cls.version != row["version"]:
            outdated[entry.kind, entry.reference] = (row["version"], entry.cls)
        saved = f"{row['distribution']} {row['distribution_version']}"
        installed = f"{entry.distribution} {entry.distribution_version}"
        if saved != installed:
            releases.add(f"{saved} (installed: {installed})")
    if releases:
        change = "components are migrated" if outdated else "component versions are the same"
        warnings.warn(
            f"{header.path} was saved with {', '.join(sorted(releases))}; {change}",
            ZooWarning,
            stacklevel=5,
        )
    return outdated
