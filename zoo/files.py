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
    _sweep(target)
    # A folder, because safetensors writes to a temporary file of its own beside what it is given.
    room = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    room.mkdir()
    beside = room / "model"
    try:
        beside.touch()
        mode = beside.stat().st_mode  # safetensors makes files for the owner only
        yield beside
        beside.chmod(mode)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _sweep(target: Path) -> None:
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
