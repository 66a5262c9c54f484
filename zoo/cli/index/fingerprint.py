"""The fingerprint of an environment: it changes whenever the index could be out of date.

It covers the Python version, ``ZOO_PLUGINS`` and ``sys.path``; the metadata of all installed
distributions; the location of every top-level package that plugins import; all files of the zoo
and of the plugins' packages; and the file of every other imported module.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zoo.registry.distributions import metadata_folders

Fingerprint = Mapping[str, Any]
"""Plain data that survives a round trip through JSON unchanged."""

_METADATA_FILES = ("METADATA", "PKG-INFO", "entry_points.txt")


def environment() -> dict[str, Any]:
    """Return the part of the fingerprint that selects the index file."""
    return {
        "python": sys.version,
        "prefix": sys.prefix,
        "plugins": os.environ.get("ZOO_PLUGINS"),
        "path": _import_path(),
    }


def _import_path() -> list[str]:
    """Return ``sys.path`` without the entry for the script or the working directory.

    That entry differs between ``zoo`` and ``python -m zoo``. A module that it hides is detected
    by the location of packages.
    """
    automatic = {""}
    with contextlib.suppress(OSError):  # the working directory was removed
        automatic.add(os.getcwd())
    if sys.argv:
        automatic.add(os.path.dirname(os.path.realpath(sys.argv[0])))
    is_automatic = not sys.flags.safe_path and sys.path[:1] and sys.path[0] in automatic
    return sys.path[1:] if is_automatic else list(sys.path)


def take_fingerprint(
    packages: Iterable[str], trees: Iterable[str], files: Iterable[str]
) -> Fingerprint:
    """Return the current fingerprint.

    Args:
        packages: names of top-level packages whose location matters.
        trees: folders of which every file matters.
        files: further files that matter.
    """
    return {
        "environment": environment(),
        "distributions": distributions(),
        "packages": {name: _locate(name) for name in packages},
        "trees": {folder: _list_tree(folder) for folder in trees},
        "files": {file: _stat(file) for file in files},
    }


def is_current(recorded: Fingerprint) -> bool:
    """Return whether a fingerprint taken earlier still holds."""
    keys = (recorded["packages"], recorded["trees"], recorded["files"])
    return take_fingerprint(*keys) == recorded


def times(fingerprint: Fingerprint) -> Iterator[int]:
    """Yield the time of the last change of every file, in nanoseconds."""
    rows = [row for tree in fingerprint["trees"].values() for _, row in tree]
    rows += fingerprint["files"].values()
    rows += [row for _, *states in fingerprint["distributions"] for row in states]
    yield from (row[1] for row in rows if row is not None)


def distributions() -> list[list[Any]]:
    """Return the metadata folders and archives on ``sys.path`` with the state of their files."""
    folders = [
        [folder, _stat(folder), *(_stat(os.path.join(folder, name)) for name in _METADATA_FILES)]
        for folder in metadata_folders()
    ]
    return folders + [[entry, _stat(entry)] for entry in sys.path if os.path.isfile(entry)]


def _locate(package: str) -> str | list[str] | None:
    if "." in package:  # finding a submodule would import its parent
        return None
    module = sys.modules.get(package)
    try:
        spec = importlib.util.find_spec(package) if module is None else module.__spec__
    except (ImportError, ValueError, AttributeError):
        return None
    return (spec.origin or list(spec.submodule_search_locations or ())) if spec else None


def _list_tree(folder: str) -> list[list[Any]]:
    paths = []
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
        # Linked subfolders are not entered; their own time shows added and removed files.
        links = [name for name in subfolders if os.path.islink(os.path.join(parent, name))]
        paths += [os.path.join(parent, name) for name in (*links, *sorted(names))]
    return [[path, _stat(path)] for path in paths]


def _stat(path: str) -> list[int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns]
