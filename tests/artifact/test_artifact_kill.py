"""Interrupted and concurrent saves leave the old model or the new one.

Run as a script, this file forks processes that save, kills or stops them, and prints the results
as JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import torch

from zoo.artifact import load, save
from zoo.errors import ArtifactError
from zoo.interfaces import Model
from zoo.spec.composition import compose

KILLS = 25


def large_model(seed: int) -> Model:
    """Return a model of a few megabytes, so that a save takes some milliseconds."""
    return compose("bahdanau-reversal", overrides=["model.source.vocab=8000"], seed=seed)


def saved_model(path: Path, models: list[Model]) -> int:
    """Return the index of the model that the file contains."""
    found = load(path, verify=True).state_dict()
    for index, model in enumerate(models):
        state = model.state_dict()
        if state.keys() == found.keys() and all(torch.equal(state[k], found[k]) for k in state):
            return index
    raise AssertionError(f"{path} contains neither model")


def other_files(path: Path) -> set[str]:
    """Return the names in the directory, except the model's own files."""
    if not path.is_dir():
        return {entry.name for entry in path.parent.iterdir()} - {path.name}
    index = path / "model.safetensors.index.json"
    shards = set(json.loads(index.read_text())["weight_map"].values())
    return {entry.name for entry in path.iterdir()} - {index.name} - shards


def fork(work: Callable[[], None]) -> int:
    """Fork a child that calls `work` and exits, with code 1 if it raised."""
    with warnings.catch_warnings():
        # Since Python 3.12 os.fork warns about threads; the child only writes files.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def saving(
    models: list[Model], path: Path, times: int | None = None, **options: Any
) -> Callable[[], None]:
    """Return a function that saves the models in turn, `times` times or without end."""

    def work() -> None:
        for model in islice(cycle(models), times):
            save(model, path, probe=False, **options)

    return work


def exit_code(child: int) -> int:
    """Wait for a child. Return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stopped_mid_save(models: list[Model], path: Path, rng: random.Random) -> tuple[int, set[str]]:
    """Return a child that is stopped within a save, and the files it has written."""
    before = other_files(path)
    child = fork(saving(models, path, times=400))
    while True:
        time.sleep(rng.uniform(0, 0.01))
        os.kill(child, signal.SIGSTOP)
        _, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the child ended before it was stopped within a save"
        written = other_files(path) - before
        if written:
            return child, written
        os.kill(child, signal.SIGCONT)


def run_kills(
    path: Path, models: list[Model], rng: random.Random, **options: Any
) -> dict[str, Any]:
    started = time.monotonic()
    saving(models[::-1], path, times=2, **options)()
    save_time = (time.monotonic() - started) / 2
    held, exits, interrupted = [0], [], 0
    for _ in range(KILLS):
        before = other_files(path)
        other = models[::-1] if held[-1] == 0 else models
        child = fork(saving(other, path, **options))
        time.sleep(rng.uniform(0.1, 3) * save_time)
        os.kill(child, signal.SIGKILL)
        exits.append(exit_code(child))
        held.append(saved_model(path, models))
        interrupted += bool(other_files(path) - before)
    save(models[0], path, **options)
    return {
        "held": held,
        "exits": exits,
        "interrupted": interrupted,
        "left": sorted(other_files(path)),
    }


def run_stop(path: Path, models: list[Model], rng: random.Random) -> dict[str, Any]:
    save(models[0], path)
    seen = []
    for _ in range(5):
        child, written = stopped_mid_save(models[:1], path, rng)
        save(models[1], path)
        seen.append({"written": sorted(written), "kept": sorted(written & other_files(path))})
        seen[-1]["held"] = saved_model(path, models)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.05)
        ended, status = os.waitpid(child, os.WNOHANG)
        seen[-1]["failed"] = bool(ended) and status != 0
        if not ended:
            os.kill(child, signal.SIGKILL)
            exit_code(child)
    return {"seen": seen}


def run_race(path: Path, models: list[Model], times: int, **options: Any) -> dict[str, Any]:
    save(models[0], path, **options)
    running = [fork(saving([model], path, times=times, **options)) for model in models]
    held, exits = [], []
    while running:
        held.append(saved_model(path, models))
        for child in list(running):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                running.remove(child)
                exits.append(os.waitstatus_to_exitcode(status))
    return {"held": held, "exits": exits, "left": sorted(other_files(path))}


def run_ranks(path: Path, models: list[Model], **options: Any) -> dict[str, Any]:
    """Three ranks save at the same time; rank 0 has another model than the others."""

    def work(rank: int) -> Callable[[], None]:
        def saves() -> None:
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": "3"}
            saving([models[1 if rank == 0 else 0]], path, times=10, **options)()

        return saves

    save(models[0], path, **options)
    children = [fork(work(rank)) for rank in (2, 0, 1)]
    exits = [exit_code(child) for child in children]
    return {"exits": exits, "held": saved_model(path, models), "left": sorted(other_files(path))}


def run_limit(path: Path, models: list[Model]) -> dict[str, Any]:
    save(models[0], path)
    message = path.with_suffix(".message")

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            save(models[1], path)
        except ArtifactError as error:
            message.write_text(str(error))

    code = exit_code(fork(work))
    text = message.read_text() if message.exists() else ""
    message.unlink(missing_ok=True)
    return {
        "exit": code,
        "message": text,
        "held": saved_model(path, models),
        "left": sorted(other_files(path)),
    }


def run_all(folder: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    models, rng = [large_model(0), large_model(1)], random.Random()

    def new_path(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name / "model.safetensors"

    return {
        "kills": run_kills(new_path("kills"), models, rng),
        "shards": run_kills(folder / "sharded", models, rng, shard_bytes="400kB"),
        "stop": run_stop(new_path("stop"), models, rng),
        "race": run_race(new_path("race"), models, times=30),
        "race of shards": run_race(folder / "raced", models, times=10, shard_bytes="400kB"),
        "ranks": run_ranks(new_path("ranks"), models),
        "ranks with shards": run_ranks(folder / "ranked", models, shard_bytes="400kB"),
        "limit": run_limit(new_path("limit"), models),
    }


pytestmark = pytest.mark.slow  # forks 200 processes


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of all processes, forked from one that imported torch."""
    folder = tmp_path_factory.mktemp("kill")
    command = [sys.executable, __file__, str(folder)]
    # A process forked from one with threads of OpenMP can wait for them forever.
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environ
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("form", ["kills", "shards"])
def test_killed_process_leaves_the_old_model_or_the_new_one(
    results: dict[str, Any], form: str
) -> None:
    kills = results[form]
    assert kills["exits"] == [-signal.SIGKILL] * KILLS
    assert len(kills["held"]) == 1 + KILLS
    assert set(kills["held"]) == {0, 1}
    assert kills["interrupted"] >= 3, "too few kills fell within a save"


@pytest.mark.parametrize("form", ["kills", "shards"])
def test_next_save_removes_the_files_of_a_killed_process(
    results: dict[str, Any], form: str
) -> None:
    assert results[form]["interrupted"] >= 3
    assert results[form]["left"] == []


def test_incomplete_file_of_a_running_process_stays(results: dict[str, Any]) -> None:
    for moment in results["stop"]["seen"]:
        assert moment["written"] != []
        assert moment["kept"] == moment["written"]
        assert moment["held"] == 1
        assert not moment["failed"]


@pytest.mark.parametrize("form", ["race", "race of shards"])
def test_concurrent_saves_leave_one_of_the_two_models(results: dict[str, Any], form: str) -> None:
    race = results[form]
    assert race["exits"] == [0, 0]
    assert set(race["held"]) == {0, 1}
    assert race["left"] == []


@pytest.mark.parametrize("form", ["ranks", "ranks with shards"])
def test_only_rank_0_replaces_the_model(results: dict[str, Any], form: str) -> None:
    assert results[form] == {"exits": [0, 0, 0], "held": 1, "left": []}


def test_file_size_limit_keeps_the_old_file(results: dict[str, Any]) -> None:
    limit = results["limit"]
    assert limit["exit"] == 0
    assert "could not be written" in limit["message"]
    assert "too large" in limit["message"].lower()
    assert "unchanged" in limit["message"]
    assert (limit["held"], limit["left"]) == (0, [])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk))
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def mount(*arguments: str) -> None:
    try:
        made = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the mount command")
    if made.returncode:
        pytest.skip(f"mount failed: {made.stderr.strip()}")


@pytest.fixture(scope="module")
def small() -> Model:
    return compose("bahdanau-reversal", seed=2)


def test_full_disk_keeps_the_old_file(small_disk: Path, small: Model) -> None:
    file = save(small, small_disk / "model.safetensors")
    with pytest.raises(ArtifactError) as caught:
        save(large_model(0), file)
    assert "the disk is full" in str(caught.value)
    assert "unchanged" in str(caught.value)
    assert saved_model(file, [small]) == 0
    assert other_files(file) == set()


def test_full_disk_leaves_no_files(small_disk: Path) -> None:
    with pytest.raises(ArtifactError, match="the disk is full"):
        save(large_model(0), small_disk / "model.safetensors")
    assert list(small_disk.iterdir()) == []


def test_full_disk_keeps_the_old_shards(small_disk: Path, small: Model) -> None:
    folder = save(small, small_disk / "model", shard_bytes="100kB")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(before) > 2
    with pytest.raises(ArtifactError, match=r"the disk is full.*unchanged"):
        save(large_model(0), folder, shard_bytes="100kB")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(ArtifactError, match="the disk is full"):
        save(large_model(0), small_disk / "new", shard_bytes="100kB")
    assert [path.name for path in small_disk.iterdir()] == ["model"]


def test_read_only_file_system_raises(small_disk: Path, small: Model) -> None:
    file = save(small, small_disk / "m.safetensors")
    folder = save(small, small_disk / "model", shard_bytes="100kB")
    mount("-o", "remount,ro", str(small_disk))
    for path, size in ((file, None), (folder, "100kB"), (small_disk / "new", "100kB")):
        with pytest.raises(ArtifactError, match="could not be written: read-only file system"):
            save(small, path, shard_bytes=size)
    assert saved_model(file, [small]) == saved_model(folder, [small]) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_write_permission_raises(tmp_path: Path, small: Model) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ArtifactError, match="could not be written: permission denied"):
            save(small, tmp_path / "m.safetensors")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "owner",
    ["notes", "9" * 30, "\N{SUPERSCRIPT TWO}", "-1", ""],
    ids=["word", "huge", "superscript", "negative", "empty"],
)
def test_unrelated_files_next_to_the_target_stay(tmp_path: Path, small: Model, owner: str) -> None:
    foreign = tmp_path / f".model.safetensors.{owner}.draft.part"
    foreign.write_text("mine")
    file = save(small, tmp_path / "model.safetensors")
    assert other_files(file) == {foreign.name}


if __name__ == "__main__":
    print(json.dumps(run_all(Path(sys.argv[1]))))
