"""Concurrent, killed and read-only downloads, and killed pushes, leave no incomplete files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, environment, list_files, run_process
from hub_server import TOKEN, Hub

from zoo.errors import HubError
from zoo.hub import fetch

WORKER = str(Path(__file__).parents[1] / "kits" / "hub_worker.py")


@pytest.fixture
def repo(hub: Hub) -> Hub:
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b"{}"})
    return hub


def worker(hub: Hub, mode: str, cache: Path) -> Any:
    env = environment(hub, cache.parent / "home")
    done = run_process([sys.executable, WORKER, mode, str(cache)], env, cache.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "mode", ["fetch_concurrently", pytest.param("fetch_without_flock", marks=pytest.mark.slow)]
)
def test_concurrent_downloads_get_the_right_bytes(repo: Hub, tmp_path: Path, mode: str) -> None:
    cache = tmp_path / "shared"
    assert worker(repo, mode, cache) == ["right"] * 6
    requests = len(repo.requests_to("objects", "cdn"))
    # With locks the others wait for the first download; without, several may download.
    assert requests == 1 if mode == "fetch_concurrently" else 1 <= requests <= 6
    assert not [p for p in list_files(cache) if ".part" in p]


@pytest.mark.slow
def test_concurrent_writes_to_the_lock_file_are_all_kept(repo: Hub, tmp_path: Path) -> None:
    pins = worker(repo, "write_pins_concurrently", tmp_path / "project")
    assert pins == [f"a/b{number}@v{one}" for number in range(6) for one in range(4)]


@pytest.mark.slow
def test_interrupted_download_leaves_no_incomplete_file(repo: Hub, tmp_path: Path) -> None:
    repo.fault("objects", lambda a: replace(a, max_bytes=len(BYTES) // 2, end="stall"), port="cdn")
    cache = tmp_path / "shared"
    code = f"from zoo.hub import fetch; fetch('{NAME}', ['*'], cache_dir='{cache}')"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(repo, tmp_path / "home"),
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while not any(p.stat().st_size for p in cache.rglob("*.part/new")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    assert not list(cache.rglob("*.part"))
    assert not list(cache.rglob(f"snapshots/*/{WEIGHTS}"))


@pytest.mark.slow
def test_killed_download_leaves_no_visible_incomplete_file(repo: Hub, tmp_path: Path) -> None:
    repo.fault("objects", lambda a: replace(a, slow=0.015), port="cdn")
    cache = tmp_path / "shared"
    seen = worker(repo, "fetch_and_kill", cache)
    assert seen[:3] == [[], [], []]
    assert len(repo.requests_to("objects", "cdn")) >= 4
    folder = fetch(NAME, ["*"], cache_dir=cache)
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert not list(cache.rglob("*.part"))  # left by killed processes


@pytest.mark.slow
def test_read_only_cache_is_used(repo: Hub) -> None:
    store = repo.repo(NAME)
    store.branches["other"] = store.branches["main"]
    store.add({"config.json": b'{"new": 1}'}, "other")
    with tempfile.TemporaryDirectory() as staging:
        os.chmod(staging, 0o755)  # readable for another user
        pinned, moving, lacking, offline = worker(
            repo, "fetch_read_only_cache", Path(staging) / "shared"
        )
        for folder, _, _ in os.walk(staging):
            os.chmod(folder, 0o755)
    assert (pinned, moving, offline) == ("right", "right", "right")
    assert "of zoo-team/kit cannot be stored in the cache" in lacking
    assert "permission denied; set HF_HOME" in lacking


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB, smaller than the weights."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the mount command")
    if made.returncode:
        pytest.skip(f"mount failed: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_full_disk_raises_and_leaves_no_file(repo: Hub, small_disk: Path) -> None:
    with pytest.raises(HubError, match=r"cannot be stored in the cache .*: the disk is full"):
        fetch(NAME, ["*"], cache_dir=small_disk)
    assert not list(small_disk.rglob("*.part"))
    assert not [p for p in list_files(small_disk) if WEIGHTS in p]
    repo.repo(NAME).add({WEIGHTS: BYTES[:1000]})
    assert (fetch(NAME, ["*"], cache_dir=small_disk) / WEIGHTS).read_bytes() == BYTES[:1000]


def test_staging_dir_of_a_process_killed_after_the_rename_is_removed(
    repo: Hub, tmp_path: Path
) -> None:
    cache = tmp_path / "shared"
    folder = fetch(NAME, ["*"], cache_dir=cache)
    blob = (folder / WEIGHTS).resolve()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    staging = blob.with_name(f".{blob.name}.{dead.pid}.0123abcd.part")
    staging.mkdir()
    (folder / WEIGHTS).unlink()
    fetch(NAME, ["*"], cache_dir=cache)
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert not staging.exists()


PUSHES = {
    "saved model": "zoo.push({saved!r}, {name!r})",
    "model": "zoo.push(zoo.compose('bahdanau-reversal'), {name!r})",
}
FAULTS = {"upload": ("/upload/", "cdn"), "commit": ("/commit/", "hub")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "where"),
    [("saved model", "upload"), pytest.param("model", "commit", marks=pytest.mark.slow)],
)
def test_next_push_removes_the_files_of_a_killed_one(
    hub: Hub, saved: Path, tmp_path: Path, what: str, where: str
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    pattern, port = FAULTS[where]
    code = "import zoo; " + PUSHES[what].format(saved=str(saved), name=NAME)
    env = environment(hub, tmp_path / "home", HF_TOKEN=TOKEN, TMPDIR=str(temporary))
    hub.fault(pattern, lambda a: replace(a, max_bytes=0, end="stall"), port=port)
    with subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while not hub.requests_to(pattern, port):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert os.listdir(temporary) != []
    hub.faults.clear()
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    assert list_files(temporary) == {}
    assert os.listdir(temporary) == []
