"""Forked processes that download concurrently, are killed, or have a read-only cache.

Run as `python hub_worker.py MODE CACHE`; prints the results as JSON.
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
    """Return "right", "wrong" or the error message."""
    try:
        folder = fetch(NAME, ["*"], cache_dir=cache, **options)  # type: ignore[arg-type]
    except HubError as error:
        return str(error)
    return "right" if (folder / WEIGHTS).read_bytes() == BYTES else "wrong"


def fork_process(work: object, name: str, folder: Path) -> int:
    """Fork a process that writes the result of `work` to a file."""
    pid = os.fork()
    if pid:
        return pid
    try:
        (folder / name).write_text(work())  # type: ignore[operator]
    finally:
        os._exit(0)


def fetch_concurrently(cache: Path) -> list[str]:
    """Download in six processes to one empty cache."""
    results = cache.parent
    pids = [fork_process(lambda: fetch_result(cache), f"result{n}", results) for n in range(6)]
    for pid in pids:
        os.waitpid(pid, 0)
    return [(results / f"result{n}").read_text() for n in range(6)]


def write_pins_concurrently(folder: Path) -> list[str]:
    """Write four pins to one zoo.lock in each of six processes."""
    folder.mkdir()

    def write_pins(number: int) -> str:
        for version in range(4):
            write_pin(Reference(f"a/b{number}", f"v{version}"), Pin(f"{number}" * 40), folder)
        return ""

    pids = [fork_process(partial(write_pins, n), f"result{n}", folder.parent) for n in range(6)]
    for pid in pids:
        os.waitpid(pid, 0)
    return sorted(read_lock(folder))


def fetch_without_flock(cache: Path) -> list[str]:
    """Do the same on a file system without locks."""

    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    fcntl.flock = refuse
    return fetch_concurrently(cache)


def fetch_and_kill(cache: Path) -> list[list[str]]:
    """Kill downloads after a number of bytes. Return the hashes of visible blobs each time."""
    seen: list[list[str]] = []
    for count in (1, 40_000, 150_000, 250_000, len(BYTES)):
        pid = fork_process(lambda: fetch_result(cache), "result", cache.parent)
        deadline = time.monotonic() + 5
        while _on_disk(cache) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        files = [p for p in cache.rglob("*") if p.is_file() and ".part" not in str(p)]
        expected = {hashlib.sha256(BYTES).hexdigest()}
        large = [p for p in files if len(p.name) == 64 and p.parent.name == "blobs"]
        seen.append([hashlib.sha256(p.read_bytes()).hexdigest() for p in large])
        assert all(set(hashes) <= expected for hashes in seen)
    return seen


def _on_disk(cache: Path) -> int:
    """Return the number of downloaded bytes of the large file."""
    sizes = [0]
    for blobs in cache.glob("*/blobs"):
        for folder, _, names in os.walk(blobs):  # ignores directories that are removed meanwhile
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    sizes.append(os.stat(os.path.join(folder, name)).st_size)
    # The counts increase, so files of killed processes do not matter.
    return max(sizes)


def fetch_read_only_cache(cache: Path) -> list[str]:
    """Use a read-only cache that is complete, unresolved, incomplete, and offline."""
    commit = fetch(NAME, ["*"], cache_dir=cache).name
    for folder, _, _ in os.walk(cache):
        os.chmod(folder, 0o555)

    def fetch_all() -> str:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        pinned = fetch_result(cache, revision=commit)
        moving = fetch_result(cache)
        lacking = fetch_result(cache, revision="other")
        offline = fetch_result(cache, local_files_only=True)
        return json.dumps([pinned, moving, lacking, offline])

    results = cache.parent / "results"
    results.mkdir()
    results.chmod(0o777)
    os.waitpid(fork_process(fetch_all, "result", results), 0)
    return json.loads((results / "result").read_text())


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
