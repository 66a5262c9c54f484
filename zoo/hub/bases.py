"""Bases of adapters: the models whose weights they were trained on."""

from __future__ import annotations

from pathlib import Path

from zoo import artifact
from zoo.errors import HubError
from zoo.hub.checkout import Options
from zoo.hub.models import Source, download_model, find, resolve_source
from zoo.hub.shipped import ShippedFile
from zoo.interfaces import Model


def find_base(name: str, revision: str | None) -> Path:
    """Return the path of a base; a path is relative to the current directory."""
    return find(name, revision=revision)


def base_reference(source: Source) -> tuple[Path, str | None, str | None]:
    """Return the path of a base, and the name and the commit with which another machine finds it.

    The name of a local path is None.
    """
    found = resolve_source(source, None, Options())
    path = download_model(found)
    if isinstance(found, Path):
        return path, None, None
    if isinstance(found, ShippedFile):
        return path, str(source), None
    return path, found.repo, found.commit


def load_shareable(path: Path) -> Model:
    """Load a model; raise HubError if its base is a local file, which others do not have."""
    header = artifact.read_header(path)
    if header.base is not None and (header.path.parent / header.base["name"]).exists():
        raise HubError(
            f"{path} needs its base, the local file {header.base['name']}; push the base first and "
            "save the adapter with base='org/name', or merge it with 'zoo merge'"
        )
    return artifact.load(path, find_base=find_base)
