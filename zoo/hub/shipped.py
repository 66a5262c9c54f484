"""Weights that are shipped as files, next to a catalogue or in data packages.

A data package declares an entry point in the group ``zoo.weights``, whose value is the package that
contains the files::

    [project.entry-points."zoo.weights"]
    my-weights = "my_weights"
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zoo.errors import ArtifactError, MissingExtra, RegistryError
from zoo.files import hash_file
from zoo.hub.catalogue import CatalogueEntry, Shipped, builtin_file, load_catalogue

GROUP = "zoo.weights"
"""The group of entry points that name packages with weights."""


@dataclass(frozen=True)
class ShippedFile:
    """The file of a model with shipped weights."""

    path: Path
    entry: CatalogueEntry


def shipped_models() -> list[CatalogueEntry]:
    """Return the models of all catalogues that have shipped weights, installed or not."""
    return [model for model in load_catalogue().models if model.shipped is not None]


def find_shipped(entry: CatalogueEntry) -> ShippedFile:
    """Return the file of a model, compared with the size and the sha256 in the catalogue.

    Raises:
        MissingExtra: if the package with the weights of the zoo is not installed.
        RegistryError: if the model has no shipped weights, or those of another catalogue are not
            installed.
        ArtifactError: if the file has another content.
    """
    shipped = entry.shipped
    if shipped is None:
        raise RegistryError(f"'{entry.name}' has no shipped weights")
    path = _find_file(entry, shipped)
    if path is None and entry.file == builtin_file():
        raise MissingExtra(f"'{entry.name}'", library=Path(shipped.file).name, extra="weights")
    if path is None:
        raise RegistryError(
            f"the weights of '{entry.name}' are not installed: {shipped.file} is not next to "
            f"{entry.file} and not in a package with an entry point '{GROUP}'"
        )
    return ShippedFile(path, entry)


def is_shipped(name: str) -> bool:
    """Return whether a catalogue lists shipped weights of this name, installed or not."""
    return any(model.name == name for model in shipped_models())


def _candidates(entry: CatalogueEntry, shipped: Shipped) -> Iterator[Path]:
    """Yield the paths at which the file can be: relative to the catalogue, or in a package."""
    from importlib.metadata import entry_points  # slow to import

    yield entry.file.parent / shipped.file
    for point in entry_points(group=GROUP):
        try:
            spec = importlib.util.find_spec(point.module.partition(".")[0])
        except (ImportError, ValueError):
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(folder, Path(shipped.file).name)


def _find_file(entry: CatalogueEntry, shipped: Shipped) -> Path | None:
    """Return the file with the expected content; other packages can have a file of its name."""
    problems = []
    for path in filter(Path.is_file, _candidates(entry, shipped)):
        size, sha256 = path.stat().st_size, hash_file(path)
        if (size, sha256) == (shipped.bytes, shipped.sha256):
            return path
        problems.append(
            f"{path} has {size:,} bytes and sha256 {sha256}, but the catalogue expects "
            f"{shipped.bytes:,} bytes and sha256 {shipped.sha256} for '{entry.name}': the file is "
            "damaged or of another version; install it again"
        )
    if problems:
        raise ArtifactError(problems[0])
    return None
