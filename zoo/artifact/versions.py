"""The lock of an artifact against what is installed: the same, near enough, or migrated."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from zoo.artifact.header import Header
from zoo.errors import ArtifactError, RegistryError, SpecError, ZooWarning
from zoo.interfaces import Component, Entry
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import Spec, load_spec

OutdatedComponents = dict[tuple[str, str], tuple[int, type[Component]]]
"""Components that are newer here, by kind and reference: the artifact's version, and the class."""


def resolve_versions(
    header: Header, tensors: Mapping[str, Tensor], registry: ComponentRegistry
) -> tuple[Spec, Mapping[str, Tensor]]:
    """The spec and the tensors as the installed components understand them."""
    data, tensors, older = header.spec, dict(tensors), _find_outdated(header, registry)
    if older:
        data, tensors = _migrate(header, tensors, older)
    try:
        spec = load_spec(data, registry=registry)
    except SpecError as error:
        raise ArtifactError(f"{header.path}: its spec does not hold here:\n{error}") from None
    listed = {(row["kind"], row["plugin"], row["name"]) for row in header.providers}
    for row in spec.providers():
        if not older and (row["kind"], row["plugin"], row["name"]) not in listed:
            raise ArtifactError(
                f"{header.path}: its lock does not list {row['kind']} '{row['name']}', "
                "which its spec uses"
            )
    return spec, tensors


def _find_outdated(header: Header, registry: ComponentRegistry) -> OutdatedComponents:
    """Refuses what is missing or too new, and warns of other releases."""
    older: OutdatedComponents = {}
    releases = set()
    for row in header.providers:
        entry = _get_entry(header, row, registry)
        if entry.cls.version != row["version"]:
            _check_migration_exists(header, row, entry)
            older[entry.kind, entry.reference] = (row["version"], entry.cls)
        had = f"{row['distribution']} {row['distribution_version']}"
        has = f"{entry.distribution} {entry.distribution_version}"
        if had != has:
            releases.add(f"{had} (here: {has})")
    if releases:
        warnings.warn(
            f"{header.path} was saved with {', '.join(sorted(releases))}; its components are of "
            f"{'versions that migrate' if older else 'the same versions'}, so it loads",
            ZooWarning,
            stacklevel=4,
        )
    return older


def _get_entry(header: Header, row: Mapping[str, Any], registry: ComponentRegistry) -> Entry:
    try:
        return registry.get(row["kind"], f"{row['plugin']}:{row['name']}")
    except RegistryError as error:
        raise ArtifactError(
            f"{header.path} needs {row['kind']} '{row['name']}' of plugin '{row['plugin']}'; "
            f"install it with: {_pip_command(row)} ({error})"
        ) from None


def _check_migration_exists(header: Header, row: Mapping[str, Any], entry: Entry) -> None:
    """Refuse another version of a component that no migration leads to."""
    has = f"{entry.distribution} {entry.distribution_version}"
    told = (
        f"{header.path} was made with version {row['version']} of {entry.kind} '{entry.name}', "
        f"but distribution {has} has version {entry.cls.version}"
    )
    if not 1 <= row["version"] < entry.cls.version:
        raise ArtifactError(f"{told}; install what it was made with: {_pip_command(row)}")
    if getattr(entry.cls.migrate, "__func__", None) is getattr(Component.migrate, "__func__", 0):
        raise ArtifactError(
            f"{told} and no migration to it; install what it was made with: {_pip_command(row)}"
        )


def _pip_command(row: Mapping[str, Any]) -> str:
    return f"pip install '{row['distribution']}=={row['distribution_version']}'"


def _migrate(
    header: Header, tensors: Mapping[str, Tensor], older: OutdatedComponents
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The spec and the tensors, each older part brought forward, the innermost first."""
    data, held = copy.deepcopy(header.spec), dict(tensors)
    if not header.component_paths:
        raise ArtifactError(
            f"{header.path} does not say where its parts stand, so they cannot be migrated"
        )
    for place in sorted(header.component_paths, key=lambda place: -len(_parse_path(place["path"]))):
        found = older.get((place["kind"], place["type"]))
        if found is None:
            continue
        *above, last = _parse_path(place["path"])
        try:
            owner: Any = data
            for step in above:
                owner = owner[step]
            node, outcomes = owner[last], []
            for at in place["at"] or [None]:
                params, moved = _migrate_component(
                    header, place, found, node, _tensors_with_prefix(held, at)
                )
                outcomes.append(params)
                for name in _tensors_with_prefix(held, at):
                    del held[_qualified_name(at, name)]
                held |= {_qualified_name(at, name): tensor for name, tensor in moved.items()}
        except (KeyError, IndexError, TypeError) as error:
            raise ArtifactError(
                f"{header.path}: {place['path']} could not be migrated: "
                f"{type(error).__name__}: {error}"
            ) from error
        if any(params != outcomes[0] for params in outcomes):
            raise ArtifactError(
                f"{header.path}: {place['path']} stands in several places of the model, and its "
                "migration gives them different parameters"
            )
        owner[last] = {"type": place["type"], **outcomes[0]}
    return data, held


def _migrate_component(
    header: Header,
    place: Mapping[str, Any],
    found: tuple[int, type[Component]],
    node: Mapping[str, Any],
    tensors: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One part, step by step from its version to the installed one."""
    version, cls = found
    params = {key: copy.deepcopy(value) for key, value in node.items() if key != "type"}
    for step in range(version, cls.version):
        try:
            params, tensors = cls.migrate(step, params, tensors)
        except Exception as error:
            raise ArtifactError(
                f"{header.path}: {place['kind']} '{cls.name}' at {place['path']} could not be "
                f"migrated from version {step} to {step + 1}: {type(error).__name__}: {error}"
            ) from error
    return dict(params), dict(tensors)


def _parse_path(path: str) -> list[str | int]:
    """``model.layers[2].scorer`` as keys and indices."""
    found = re.findall(r"\[(\d{1,6})\]|([^.\[\]]+)", path)
    return [int(index) if index else key for index, key in found]


def _qualified_name(at: str | None, name: str) -> str:
    return f"{at}.{name}" if at else name


def _tensors_with_prefix(tensors: Mapping[str, Any], at: str | None) -> dict[str, Any]:
    """The tensors of the module of that name, by the names they have in it; no module, none."""
    if at is None:
        return {}
    start = f"{at}." if at else ""
    return {n[len(start) :]: t for n, t in tensors.items() if n.startswith(start)}
