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
    room = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    room.mkdir()
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


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
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def sweep(target: Path) -> None:
    """Remove what killed processes left half-written beside the target."""
    own = re.compile(rf"\.{re.escape(target.name)}\.([1-9][0-9]{{0,8}})\.[0-9a-f]{{8}}\.part")
    for orphan in target.parent.iterdir():
        found = own.fullmatch(orphan.name)
        if found and not _alive(int(found[1])):
            shutil.rmtree(orphan, ignore_errors=True)


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
