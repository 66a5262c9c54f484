"""Migration of a stored spec and its tensors to newer versions of components."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from zoo.artifact.header import Header
from zoo.errors import ArtifactError
from zoo.interfaces import Component
from zoo.registry.blueprint import format_error
from zoo.registry.plugin_call import PluginCall
from zoo.spec.providers import reference

OutdatedComponents = dict[tuple[str, str], tuple[int, type[Component]]]
"""Components with a newer installed version, by kind and reference: stored version, and class."""

OPTIONAL_SECTIONS = ("init", "sampler", "filters", "objective", "metrics", "preprocessing")
"""Sections that are not needed to load a model."""


def migrate(
    header: Header, tensors: Mapping[str, Tensor], outdated: OutdatedComponents
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Migrate the spec and the tensors, innermost components first."""
    data, held = copy.deepcopy(header.spec), dict(tensors)
    paths = header.component_paths or _derive_component_paths(header)
    rows = [row for row in paths if (row["kind"], row["type"]) in outdated]
    for row in sorted(rows, key=lambda row: -len(_parse_path(row["path"]))):
        if section_of(row) in OPTIONAL_SECTIONS and section_of(row) not in data:
            continue
        *above, last = _parse_path(row["path"])
        try:
            owner: Any = data
            for key in above:
                owner = owner[key]
            node, outcomes = owner[last], []
            for prefix in row["at"] or [None]:
                params, migrated = _migrate_component(
                    header,
                    row,
                    outdated[row["kind"], row["type"]],
                    node,
                    _tensors_with_prefix(held, prefix),
                )
                outcomes.append(params)
                for name in _tensors_with_prefix(held, prefix):
                    del held[_qualified_name(prefix, name)]
                held |= {_qualified_name(prefix, name): t for name, t in migrated.items()}
        except (KeyError, IndexError, TypeError) as error:
            raise ArtifactError(
                f"{header.path}: {row['path']} could not be migrated: "
                f"{type(error).__name__}: {error}"
            ) from error
        if any(params != outcomes[0] for params in outcomes):
            raise ArtifactError(
                f"{header.path}: {row['path']} is used by several modules of the model, and its "
                "migration returned different parameters for them"
            )
        owner[last] = {"type": row["type"], **outcomes[0]}
    return data, held


def _migrate_component(
    header: Header,
    row: Mapping[str, Any],
    outdated: tuple[int, type[Component]],
    node: Mapping[str, Any],
    tensors: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Migrate one component step by step from its stored version to the installed one."""
    version, cls = outdated
    params = {key: copy.deepcopy(value) for key, value in node.items() if key != "type"}
    for step in range(version, cls.version):
        try:
            with PluginCall():
                params, tensors = cls.migrate(step, params, tensors)
        except Exception as error:
            hint = "" if header.component_paths else " (format 1 does not store module names)"
            raise ArtifactError(
                f"{header.path}: {row['kind']} '{cls.name}' at {row['path']} could not be "
                f"migrated from version {step} to {step + 1}: {format_error(error)}{hint}"
            ) from error
    return dict(params), dict(tensors)


def _derive_component_paths(header: Header) -> Iterator[dict[str, Any]]:
    """Yield the component paths of a format 1 spec, without the module names of each component.

    Enough for migrations that change parameters only.
    """
    stack: list[tuple[str, Any]] = list(header.spec.items())
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}", inner) for key, inner in value.items())
            for row in header.providers:
                if value.get("type") == reference(row):
                    yield {"path": path, "kind": row["kind"], "type": reference(row), "at": []}
        elif isinstance(value, list):
            stack.extend((f"{path}[{index}]", inner) for index, inner in enumerate(value))


def section_of(row: Mapping[str, Any]) -> str:
    """Return the section of a component path."""
    return str((*_parse_path(row["path"]), "")[0])


def _parse_path(path: str) -> list[str | int]:
    """Split a path such as `model.layers[2].scorer` into keys and indices."""
    steps = re.findall(r"\[(\d{1,6})\]|([^.\[\]]+)", path)
    return [int(index) if index else key for index, key in steps]


def _qualified_name(prefix: str | None, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _tensors_with_prefix(tensors: Mapping[str, Any], prefix: str | None) -> dict[str, Any]:
    """Return the tensors of a module by their names in it; none for a part without a module."""
    if prefix is None:
        return {}
    start = f"{prefix}." if prefix else ""
    return {n[len(start) :]: t for n, t in tensors.items() if n.startswith(start)}
