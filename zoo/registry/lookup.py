"""Lookups shared by the component registry and the index of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from zoo.errors import RegistryError, suggest


class _Component(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def plugin(self) -> str: ...


class _File(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def plugin(self) -> str: ...
    @property
    def path(self) -> Path: ...


C = TypeVar("C", bound=_Component)
F = TypeVar("F", bound=_File)


def select_kind(components: Iterable[C], kind: str | None, kinds: Sequence[str]) -> list[C]:
    """Return the components of one kind, or all, sorted by kind and name."""
    if kind is not None and kind not in kinds:
        raise RegistryError(f"no kind named '{kind}'{suggest(kind, kinds)}")
    selected = [component for component in components if kind in (None, component.kind)]
    return sorted(selected, key=lambda c: (kinds.index(c.kind), c.name, c.plugin))


def group_by_name(files: Iterable[F]) -> dict[str, list[F]]:
    """Return the files by name; several plugins may have a file of one name."""
    groups: dict[str, list[F]] = {}
    for file in files:
        groups.setdefault(file.name, []).append(file)
    return groups


def find_file(
    what: str,
    groups: Mapping[str, Sequence[_File]],
    name: str,
    hint: str = "",
    list_command: str | None = None,
) -> Path:
    """Return the path of a spec, map or recipe; RegistryError if there is none or more than one."""
    files = groups.get(name, [])
    if len(files) == 1:
        return files[0].path
    if files:
        owners = " and ".join(f"plugin '{file.plugin}'" for file in files)
        raise RegistryError(f"{what} '{name}' is provided by {owners}; use the file's path instead")
    tail = suggest(name, groups, list_command=list_command or f"zoo list --{what}s")
    raise RegistryError(f"no {what} or file named '{name}'{tail}{hint}")
