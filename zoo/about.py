"""The name and version of the distribution the zoo comes in."""

from __future__ import annotations

DISTRIBUTION = "attention-zoo"


def version() -> str:
    """The installed version, or 'unknown' where the zoo runs from a bare checkout."""
    import importlib.metadata  # slower to import than the rest of `zoo --help`

    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
