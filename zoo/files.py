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
def replacing(target: Path) -> Iterator[Path]:
    """A path beside the target to write to; swapped in, whole and on disk, at the end."""
    with room_for(target) as room:
        beside = room / "new"
        yield beside
        to_disk(beside)
        os.replace(beside, target)
        to_disk(target.parent)


@contextlib.contextmanager
def room_for(target: Path) -> Iterator[Path]:
    """A folder beside the target for what is not whole yet, gone at the end."""
    sweep(target)
    room, opened = _own_room(target)
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)
        os.close(opened)


def _own_room(target: Path) -> tuple[Path, int]:
    """A new folder, and the lock by which others see, in any container, that its owner lives."""
    while True:
        room = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
        room.mkdir()
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(room, os.O_RDONLY)
            _locked(opened, wait=True)
            if room.exists():
                return room, opened
            os.close(opened)  # swept in the moment before the lock


def to_disk(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for others that are in this block for the same folder; a dead process holds nobody up.

    Where the system or the disk knows no such locks, nobody waits.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        _locked(opened, wait=True)
        yield
    finally:
        os.close(opened)


def _locked(opened: int, *, wait: bool) -> bool | None:
    """Whether the lock is ours now, until it is closed; None where there are no locks."""
    try:
        import fcntl

        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def sweep(target: Path) -> None:
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
            opened = os.open(orphan, os.O_RDONLY)
            try:
                if _abandoned(orphan, opened, int(found[1])):
                    shutil.rmtree(orphan, ignore_errors=True)
            finally:
                os.close(opened)


def _abandoned(room: Path, opened: int, process: int) -> bool:
    locked = _locked(opened, wait=False)
    if locked and any(room.iterdir()):
        return True
    # There are no locks, or whoever made it has not come to locking it yet.
    return locked is not False and not _alive(process)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def reason(error: Exception) -> str:
    """What the system says went wrong, in words."""
    text = str(error)
    if "No space left" in text or getattr(error, "errno", None) == 28:
        return "the disk is full (no space left on device)"
    strerror = getattr(error, "strerror", None)
    return str(strerror).lower() if strerror else text
