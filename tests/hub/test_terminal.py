"""Verbs that are interrupted, and their output with and without a terminal."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, environment, list_files
from hub_server import TOKEN, Hub, Response
from terminal_kit import ZOO, run_on_terminal

import zoo


def run_and_interrupt(
    hub: Hub, here: Path, arguments: list[str], ready: Callable[[], object]
) -> str:
    """Send Ctrl-C when `ready` is true. Return standard error."""
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
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode == 130
    return errors


def test_interrupted_pull_leaves_no_files(hub: Hub, tmp_path: Path) -> None:
    hub.repo(NAME).add({WEIGHTS: BYTES})
    hub.fault("objects", lambda a: replace(a, max_bytes=len(BYTES) // 2, end="stall"), port="cdn")
    cache = tmp_path / "home" / "hub"
    errors = run_and_interrupt(
        hub, tmp_path, ["pull", NAME], lambda: any(cache.rglob("*.part/new"))
    )
    assert errors == "interrupted\n"
    assert not [path for path in list_files(cache) if "blobs" in path or "snapshots" in path]
    assert not (tmp_path / "zoo.lock").exists()


@pytest.mark.slow
@pytest.mark.parametrize("form", [pytest.param("one file", marks=pytest.mark.slow), "shards"])
def test_interrupted_push_changes_nothing(hub: Hub, tmp_path: Path, saved: Path, form: str) -> None:
    before = hub.repo(NAME).branches["main"]
    path = saved
    if form == "shards":
        path = zoo.save(zoo.load(saved), tmp_path / "shards", shard_bytes=100_000)
    hub.fault("upload", lambda a: Response(200, b"waiting", max_bytes=0, end="stall"), port="cdn")
    errors = run_and_interrupt(
        hub, tmp_path, ["push", str(path), NAME], lambda: hub.requests_to("upload", "cdn")
    )
    assert errors == "interrupted\n"
    assert hub.repo(NAME).branches["main"] == before
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.slow
def test_progress_bars_are_shown_on_terminals_for_large_files(hub: Hub, tmp_path: Path) -> None:
    """The file is not a model, so the only progress bar is that of the download."""
    hub.repo(NAME).add({WEIGHTS: BYTES * 4, "config.json": b"{}"})
    command = [*ZOO, "pull", NAME, "--force"]
    env = environment(hub, tmp_path / "home")
    output = run_on_terminal(command, env, tmp_path, code=1)
    assert f"{WEIGHTS}: 100%" in output
    assert "config.json" not in output
    silent = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert silent.stderr.count("\n") == 1
    assert "is not a model of this library" in silent.stderr
    assert "%" not in silent.stderr
