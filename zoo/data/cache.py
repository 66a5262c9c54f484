"""Entries of the user's cache directory: folders of files whose hashes are checked when read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zoo.errors import DataError, ZooError, ZooWarning
from zoo.files import (
    atomic_write,
    fsync_path,
    hash_file,
    lock_dir,
    os_error_message,
    remove_stale,
    remove_unlocked,
    replace_file,
    staging_dir,
    user_cache,
)

_META = "meta.json"
_ENTRY = re.compile("[0-9a-f]{32}")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Write = Callable[[Path], Mapping[str, Any]]
"""Writes files to a folder and returns their description, plain data."""


def cache_folder() -> Path:
    """Return the folder of cached data: ``zoo/data`` in the user's cache directory.

    Raises:
        DataError: if the user has no home directory.
    """
    parent = user_cache()
    if parent is None:
        raise DataError("no cache directory; set XDG_CACHE_HOME to the path of a folder")
    return parent / "zoo" / "data"


def entry_name(content: Any) -> str:
    """Return the name of the entry that is made of some plain data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class CacheEntry:
    """Files in a folder and their description. A temporary folder is removed by `close`."""

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, Any],
        temporary: contextlib.ExitStack | None = None,
    ) -> None:
        self.folder = folder
        self.description = description
        self._temporary = temporary
        self._process = os.getpid()

    def close(self) -> None:
        if self._temporary is not None and os.getpid() == self._process:  # workers have copies
            self._temporary.close()


def read_entry(name: str) -> CacheEntry | None:
    """Return an entry of the cache, or None if it is missing, incomplete, damaged or altered."""
    try:
        folder = cache_folder() / name
        meta = json.loads((folder / _META).read_bytes())
        digest, files = meta.pop("digest"), meta["files"]
        if digest != _digest(meta) or files != {file: hash_file(folder / file) for file in files}:
            return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, DataError):
        return None
    return CacheEntry(folder, meta["description"])


def write_entry(name: str | None, write: Write) -> CacheEntry:
    """Write an entry of the cache, or return the one that another process has written meanwhile.

    If the cache cannot be written, a warning names it, and a temporary folder is used.

    Args:
        name: name of the entry; None: a temporary folder.
        write: called with a folder, once.

    Raises:
        ZooError: if the disk is full.
    """
    if name is None:
        return _write_temporary(write)
    with contextlib.ExitStack() as stack:
        try:
            folder = cache_folder() / name
            _lock(folder, stack)
            found = read_entry(name)
            if found is not None:
                return found
            _remove_unfinished(folder)
            staging = stack.enter_context(staging_dir(folder / "files"))
        except (OSError, DataError) as error:
            if isinstance(error, OSError) and error.errno in _FULL:
                raise _cannot_write(folder, error) from None
            where = user_cache() or "of the user"
            warnings.warn(
                f"the cache folder {where} cannot be written: {os_error_message(error)}; a "
                "temporary folder is used, and the work is done again in the next run; set "
                "XDG_CACHE_HOME to another folder",
                ZooWarning,
                stacklevel=2,
            )
            return _write_temporary(write)
        try:
            return CacheEntry(folder, _write_files(folder, staging, write))
        except OSError as error:
            raise _cannot_write(folder, error) from None


def _lock(folder: Path, stack: contextlib.ExitStack) -> None:
    """Create a folder and hold its lock; other processes remove folders without a lock."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            stack.enter_context(lock_dir(folder))
            if folder.exists():
                return


def _remove_unfinished(own: Path) -> None:
    """Remove what processes that were killed have left in the cache."""
    for folder in own.parent.iterdir():
        if folder != own and _ENTRY.fullmatch(folder.name) and folder.is_dir():
            if not (folder / _META).exists():
                remove_unlocked(folder)
            else:
                remove_stale(folder / "files")


def _write_files(folder: Path, staging: Path, write: Write) -> Mapping[str, Any]:
    """Write the files, and last the description that makes the folder valid."""
    _remove_folder(folder / _META)
    (folder / _META).unlink(missing_ok=True)
    description = write(staging)
    files = {path.name: hash_file(path) for path in sorted(staging.iterdir())}
    for file in files:
        fsync_path(staging / file)
        _remove_folder(folder / file)
        replace_file(staging / file, folder / file)
    meta = {"description": dict(description), "files": files}
    with atomic_write(folder / _META) as temporary:
        temporary.write_text(json.dumps(meta | {"digest": _digest(meta)}), encoding="utf-8")
    return description


def _remove_folder(path: Path) -> None:
    """Remove a folder in the place of a file of a damaged entry."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _write_temporary(write: Write) -> CacheEntry:
    parent = Path(tempfile.gettempdir())
    try:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(staging_dir(parent / "zoo-data"))
            return CacheEntry(folder, write(folder), stack.pop_all())
    except OSError as error:
        raise _cannot_write(parent, error) from None


def _cannot_write(folder: Path, error: OSError) -> ZooError:
    return ZooError(
        f"the data cannot be written to {folder}: {os_error_message(error)}; set XDG_CACHE_HOME "
        "(or TMPDIR) to a folder with more space"
    )


def _digest(meta: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
