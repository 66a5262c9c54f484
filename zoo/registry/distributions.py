"""Find installed distributions with plugins; of the others only entry_points.txt is read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from zoo.about import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import Distribution

GROUP = "zoo"
"""The group of entry points that name plugins."""

_SUFFIXES = (".dist-info", ".egg-info")


def normalize_name(distribution: str) -> str:
    """Return the normalized name of a distribution, as in PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def metadata_folders(path: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the ``.dist-info`` and ``.egg-info`` entries of the directories on ``sys.path``.

    In the order of ``sys.path``; elements that are not directories are skipped.
    """
    for folder in dict.fromkeys(
        entry or os.curdir for entry in (sys.path if path is None else path)
    ):
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        in_egg = folder.lower().endswith(".egg")
        for name in names:
            low = name.lower()
            if low.endswith(_SUFFIXES) or (in_egg and low == "egg-info"):
                yield os.path.join(folder, name)


def plugin_distributions() -> dict[str, Distribution]:
    """Return the distributions that declare plugins, by normalized name, this one first.

    As in `importlib.metadata.entry_points`, the first distribution of a name on ``sys.path``
    hides the others, whether or not it declares plugins.
    """
    first: dict[str, Distribution | None] = {}
    for name, distribution in _distributions():
        key = normalize_name(name)
        if key not in first:
            first[key] = distribution if _declares_plugins(distribution) else None
    named: dict[str, Distribution] = {}
    for key, candidate in first.items():
        if candidate is not None:
            named.setdefault(_declared_name(candidate) or key, candidate)
    return {name: named[name] for name in sorted(named, key=lambda n: (n != DISTRIBUTION, n))}


def _distributions() -> Iterator[tuple[str, Distribution]]:
    """Yield each distribution on ``sys.path`` with its name, taken from the folder's name."""
    # Slow to import, and the index of plugins works without it.
    from importlib.metadata import PathDistribution, distributions
    from pathlib import Path

    for entry in dict.fromkeys(sys.path):
        if os.path.isfile(entry):  # a zip archive
            for archived in distributions(path=[entry]):
                yield archived.metadata["Name"] or "", archived
            continue
        for folder in metadata_folders([entry]):
            stem = os.path.basename(folder)
            if stem.lower() == "egg-info":
                stem = os.path.basename(os.path.dirname(folder))
            yield stem.rpartition(".")[0].partition("-")[0], PathDistribution(Path(folder))


def _declares_plugins(distribution: Distribution) -> bool:
    try:
        return f"[{GROUP}]" in (distribution.read_text("entry_points.txt") or "")
    except Exception:  # not text
        return False


def _declared_name(distribution: Distribution) -> str | None:
    try:
        name = distribution.metadata["Name"]
    except Exception:  # missing, or not text
        return None
    return normalize_name(name) if name else None
