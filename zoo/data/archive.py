"""Files in tar archives."""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path

from zoo.errors import DataError, suggest

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
MAX_BYTES = 256 * 1024**2
"""Largest size of all files of an archive together."""


def find_archive(path: Path) -> Path | None:
    """Return the archive that a path such as ``tasks.tar.xz/qa1.txt`` leads into, or None."""
    for parent in path.parents:
        if parent.name.lower().endswith(SUFFIXES) and parent.is_file():
            return parent
    return None


def read_member(archive: Path, name: str) -> bytes:
    """Return a file of an archive; raise DataError if it is missing or the archive not valid."""
    stat = archive.stat()
    files = _read_files(archive, stat.st_size, stat.st_mtime_ns)
    if name not in files:
        raise DataError(f"no file '{name}' in the archive{suggest(name, files)}", str(archive))
    return files[name]


@lru_cache(maxsize=4)
def _read_files(archive: Path, size: int, modified: int) -> dict[str, bytes]:
    """Return the files of an archive by name; its size and time are part of the key of the
    cache."""
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                total += member.size
                if total > MAX_BYTES:
                    raise DataError(
                        f"its files have more than {MAX_BYTES:,} bytes; extract it", str(archive)
                    )
                stream = opened.extractfile(member) if member.isfile() else None
                if stream is not None:
                    files[member.name.removeprefix("./")] = stream.read()
    except tarfile.TarError as error:
        raise DataError(f"it is not a valid tar archive: {error}", str(archive)) from None
    return files
