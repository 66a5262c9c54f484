"""Processes that fetch at once, are killed, or may not write; started once, then forked.

Run as ``python hub_worker.py MODE CACHE``; prints what it saw as JSON.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from hub_kit import BYTES, NAME, WEIGHTS

from zoo.errors import HubError
from zoo.hub import fetch
from zoo.hub.lock_file import Pin, read_lock, write_pin
from zoo.hub.reference import Reference

NOBODY = 65534


def fetch_result(cache: Path, **options: object) -> str:
    """'right', 'wrong', or the error's words."""
    try:
        folder = fetch(NAME, ["*"], cache_dir=cache, **options)  # type: ignore[arg-type]
    except HubError as error:
        return str(error)
    return "right" if (folder / WEIGHTS).read_bytes() == BYTES else "wrong"


def fork_process(work: object, name: str, folder: Path) -> int:
    """A process that does the work and leaves what it returns in a file."""
    pid = os.fork()
    if pid:
        return pid
    try:
        (folder / name).write_text(work())  # type: ignore[operator]
    finally:
        os._exit(0)


def fetch_concurrently(cache: Path) -> list[str]:
    """Six processes on one empty cache."""
    notes = cache.parent
    pids = [fork_process(lambda: fetch_result(cache), f"said{n}", notes) for n in range(6)]
    for pid in pids:
        os.waitpid(pid, 0)
    return [(notes / f"said{n}").read_text() for n in range(6)]


def write_pins_concurrently(folder: Path) -> list[str]:
    """Six processes that each note four references in one zoo.lock."""
    folder.mkdir()

    def note(number: int) -> str:
        for one in range(4):
            write_pin(Reference(f"a/b{number}", f"v{one}"), Pin(f"{number}" * 40), folder)
        return ""

    pids = [fork_process(partial(note, n), f"said{n}", folder.parent) for n in range(6)]
    for pid in pids:
        os.waitpid(pid, 0)
    return sorted(read_lock(folder))


def fetch_without_flock(cache: Path) -> list[str]:
    """The same on a file system that knows no locks."""

    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    fcntl.flock = refuse
    return fetch_concurrently(cache)


def fetch_and_kill(cache: Path) -> list[list[str]]:
    """Killed with so many bytes on disk, again and again; the blobs visible each time."""
    seen: list[list[str]] = []
    for count in (1, 40_000, 150_000, 250_000, len(BYTES)):
        pid = fork_process(lambda: fetch_result(cache), "said", cache.parent)
        deadline = time.monotonic() + 5
        while _on_disk(cache) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        files = [p for p in cache.rglob("*") if p.is_file() and ".part" not in str(p)]
        whole = {hashlib.sha256(BYTES).hexdigest()}
        large = [p for p in files if len(p.name) == 64 and p.parent.name == "blobs"]
        seen.append([hashlib.sha256(p.read_bytes()).hexdigest() for p in large])
        assert all(set(hashes) <= whole for hashes in seen)
    return seen


def _on_disk(cache: Path) -> int:
    """How much of the large file has arrived, half or whole."""
    sizes = [0]
    for blobs in cache.glob("*/blobs"):
        for folder, _, names in os.walk(blobs):  # which passes over folders that vanish meanwhile
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    sizes.append(os.stat(os.path.join(folder, name)).st_size)
    # The counts rise from kill to kill, so what the dead left behind does not deceive.
    return max(sizes)


def fetch_read_only_cache(cache: Path) -> list[str]:
    """A cache that may be read and not written: whole, whole but unknown, and not whole."""
    commit = fetch(NAME, ["*"], cache_dir=cache).name
    for folder, _, _ in os.walk(cache):
        os.chmod(folder, 0o555)

    def asked() -> str:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        pinned = fetch_result(cache, revision=commit)
        moving = fetch_result(cache)
        lacking = fetch_result(cache, revision="other")
        offline = fetch_result(cache, local_files_only=True)
        return json.dumps([pinned, moving, lacking, offline])

    notes = cache.parent / "notes"
    notes.mkdir()
    notes.chmod(0o777)
    os.waitpid(fork_process(asked, "said", notes), 0)
    return json.loads((notes / "said").read_text())


MODES = {
    f.__name__: f
    for f in (
        fetch_concurrently,
        write_pins_concurrently,
        fetch_without_flock,
        fetch_and_kill,
        fetch_read_only_cache,
    )
}

if __name__ == "__main__":
    print(json.dumps(MODES[sys.argv[1]](Path(sys.argv[2]))))
