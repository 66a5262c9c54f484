"""The verbs as a person runs them: interrupted, on a terminal, and where nobody looks."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, environment, list_files
from hub_server import TOKEN, Hub, Response

import zoo

ZOO = [sys.executable, "-m", "zoo"]


def interrupted(
    hub: Hub, here: Path, arguments: list[str], ready: Callable[[], object]
) -> tuple[str, float]:
    """What a verb says when Ctrl-C comes as soon as it is ready, and how long it takes to go."""
    (here / "tmp").mkdir()
    env = environment(hub, here / "home", HF_TOKEN=TOKEN, TMPDIR=str(here / "tmp"))
    with subprocess.Popen(
        [*ZOO, *arguments], env=env, cwd=here, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 120
        while not ready():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode == 130
    return errors, time.monotonic() - sent


def test_a_pull_that_is_interrupted_says_so_and_leaves_nothing_half(
    hub: Hub, tmp_path: Path
) -> None:
    hub.repo(NAME).add({WEIGHTS: BYTES})
    hub.fault("objects", lambda a: replace(a, cut=len(BYTES) // 2, end="stall"), port="cdn")
    cache = tmp_path / "home" / "hub"
    said, _ = interrupted(hub, tmp_path, ["pull", NAME], lambda: any(cache.rglob("*.part/new")))
    assert said == "interrupted\n"
    assert not [path for path in list_files(cache) if "blobs" in path or "snapshots" in path]
    assert not (tmp_path / "zoo.lock").exists()


@pytest.mark.parametrize("form", ["one file", "shards"])
def test_a_push_that_is_interrupted_says_so_and_changes_nothing(
    hub: Hub, tmp_path: Path, saved: Path, form: str
) -> None:
    before = hub.repo(NAME).branches["main"]
    path = saved
    if form == "shards":
        path = zoo.save(zoo.load(saved), tmp_path / "shards", shard_bytes=100_000)
    hub.fault("upload", lambda a: Response(200, b"waiting", cut=0, end="stall"), port="cdn")
    said, took = interrupted(
        hub, tmp_path, ["push", str(path), NAME], lambda: hub.requests_to("upload", "cdn")
    )
    assert said == "interrupted\n"
    assert took < 25
    assert hub.repo(NAME).branches["main"] == before
    assert not list((tmp_path / "tmp").iterdir())


def on_a_terminal(command: list[str], env: dict[str, str], here: Path) -> str:
    """What a command writes to standard error when that is a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with subprocess.Popen(command, env=env, cwd=here, stderr=theirs, text=True) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 4096):
                written += chunk
        except OSError:
            pass  # how a terminal ends
        os.close(ours)
        assert process.wait(60) == 1
    return written.decode()


def test_bars_are_for_terminals_and_for_files_worth_one(hub: Hub, tmp_path: Path) -> None:
    """The file is no model, which is told after the download: a bar can only be the download's."""
    hub.repo(NAME).add({WEIGHTS: BYTES * 4, "config.json": b"{}"})
    command = [*ZOO, "pull", NAME, "--force"]
    env = environment(hub, tmp_path / "home")
    seen = on_a_terminal(command, env, tmp_path)
    assert f"{WEIGHTS}: 100%" in seen
    assert "config.json" not in seen
    silent = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert silent.stderr.count("\n") == 1
    assert "is no model of the zoo" in silent.stderr
    assert "%" not in silent.stderr
