"""The output folder of a demo."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from zoo.errors import ZooError


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[Path]:
    """Create a folder, and remove it if the block raises before anything was written to it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ZooError(f"folder {path} cannot be created: {error.strerror}") from None
    try:
        yield path
    except BaseException:
        with contextlib.suppress(OSError):  # the folder is not empty
            path.rmdir()
        raise
