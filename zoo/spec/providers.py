"""The plugins and distributions that provide the components of a resolved spec."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from zoo.errors import RegistryError, truncate
from zoo.interfaces import Entry
from zoo.registry.component_registry import ComponentRegistry, default_registry

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
Provider = Mapping[str, Any]
"""One row of `Spec.providers`: kind, name, version, plugin and distribution of a component."""


def reference(provider: Provider) -> str:
    """Return the qualified name of a component, `plugin:name`."""
    return f"{provider['plugin']}:{provider['name']}"


def describe_provider(entry: Entry) -> dict[str, Any]:
    """Return the row of a component."""
    return {
        "kind": entry.kind,
        "name": entry.name,
        "version": entry.cls.version,
        "plugin": entry.plugin,
        "distribution": entry.distribution,
        "distribution_version": entry.distribution_version,
    }


def used_by(data: Any, providers: Iterable[Provider]) -> list[Provider]:
    """Return the providers of the components in a resolved spec or in a part of it."""
    types, stack = set(), [data]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            types.add(str(value.get("type")))
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
    return [row for row in providers if reference(row) in types or row["name"] in types]


def pip_command(provider: Provider) -> str:
    """Return the command that installs the distribution of a component.

    Name and version come from a file: they are part of a command only if they are valid.
    """
    requirement = f"{provider['distribution']}=={provider['distribution_version']}"
    if not _REQUIREMENT.fullmatch(requirement):
        return f"{truncate(requirement, 100)!a}, which is not a valid requirement of pip"
    return f"pip install '{requirement}'"


def missing_component(provider: Provider, registry: ComponentRegistry) -> str | None:
    """Return what to install for a component that is not installed, or None if it is."""
    try:
        registry.get(provider["kind"], reference(provider))
    except RegistryError as error:
        return (
            f"{provider['kind']} '{provider['name']}' of plugin '{provider['plugin']}' is not "
            f"available; install it with: {pip_command(provider)} ({error})"
        )
    return None


def require_installed(
    section: Any, providers: Iterable[Provider], registry: ComponentRegistry | None = None
) -> None:
    """Raise RegistryError, with what to install, if a section uses a missing component.

    Args:
        section: a section of a resolved spec, such as `model.spec["objective"]`.
        providers: the providers of the model, `model.providers`.
    """
    registry = registry or default_registry()
    for provider in used_by(section, providers):
        message = missing_component(provider, registry)
        if message:
            raise RegistryError(message)
