"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """A path beside the target to write to; swapped in, whole and on disk, at the end."""
    with staging_dir(target) as staging:
        temporary = staging / "new"
        yield temporary
        fsync_path(temporary)
        os.replace(temporary, target)
        fsync_path(target.parent)


@contextlib.contextmanager
def staging_dir(target: Path) -> Iterator[Path]:
    """A folder beside the target for what is not whole yet, gone at the end."""
    remove_stale(target)
    staging, fd = _create_staging_dir(target)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(fd)


def _create_staging_dir(target: Path) -> tuple[Path, int]:
    """A new folder, and the lock by which others see, in any container, that its owner lives."""
    while True:
        staging = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
        staging.mkdir()
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(staging, os.O_RDONLY)
            _try_lock(fd, wait=True)
            if staging.exists():
                return staging, fd
            os.close(fd)  # swept in the moment before the lock


def fsync_path(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def lock_dir(folder: Path) -> Iterator[None]:
    """Wait for others that are in this block for the same folder; a dead process holds nobody up.

    Where the system or the disk knows no such locks, nobody waits.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        _try_lock(fd, wait=True)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int, *, wait: bool) -> bool | None:
    """Whether the lock is ours now, until it is closed; None where there are no locks."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def remove_stale(target: Path) -> None:
    """Remove what killed processes left half-written beside the target.

    A living one holds the lock of its folder. Without locks the process's number has to do, which
    says nothing of processes in other containers.
    """
    own = re.compile(rf"\.{re.escape(target.name)}\.([1-9][0-9]{{0,8}})\.[0-9a-f]{{8}}\.part")
    for orphan in target.parent.iterdir():
        found = own.fullmatch(orphan.name)
        if not found or not orphan.is_dir():
            continue
        with contextlib.suppress(OSError):  # somebody else swept it
            fd = os.open(orphan, os.O_RDONLY)
            try:
                if _is_stale(orphan, fd, int(found[1])):
                    shutil.rmtree(orphan, ignore_errors=True)
            finally:
                os.close(fd)


def _is_stale(staging: Path, fd: int, process: int) -> bool:
    locked = _try_lock(fd, wait=False)
    if locked and any(staging.iterdir()):
        return True
    # There are no locks, or whoever made it has not come to locking it yet.
    return locked is not False and not _process_exists(process)


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def os_error_message(error: Exception) -> str:
    """What the system says went wrong, in words."""
    text = str(error)
    if "No space left" in text or getattr(error, "errno", None) == 28:
        return "the disk is full (no space left on device)"
    strerror = getattr(error, "strerror", None)
    return str(strerror).lower() if strerror else text
