"""The name and version of the distribution."""

from __future__ import annotations

DISTRIBUTION = "attention-zoo"


def version() -> str:
    """Return the installed version, or 'unknown' if the distribution is not installed."""
    import importlib.metadata  # slow to import

    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
