"""Whatever happens to a process that saves, the file is the old one or the new one, whole.

Run as a script, this file plays the processes: it forks them from one that has torch loaded,
kills, stops and races them, and prints what it saw as JSON.
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
    """A model of a few megabytes, so that a save takes some milliseconds."""
    return compose("bahdanau-reversal", overrides=["model.source.vocab=8000"], seed=seed)


def held_by(path: Path, models: list[Model]) -> int:
    """Which of the models the file holds, bit for bit; load refuses a file that is not whole."""
    found = load(path, verify=True).state_dict()
    for index, model in enumerate(models):
        state = model.state_dict()
        if state.keys() == found.keys() and all(torch.equal(state[k], found[k]) for k in state):
            return index
    raise AssertionError(f"{path} holds neither model")


def beside(path: Path) -> set[str]:
    """What stands in the folder, but for the file itself, or for the index and its shards."""
    if not path.is_dir():
        return {entry.name for entry in path.parent.iterdir()} - {path.name}
    index = path / "model.safetensors.index.json"
    named = set(json.loads(index.read_text())["weight_map"].values())
    return {entry.name for entry in path.iterdir()} - {index.name} - named


def forked(work: Callable[[], None]) -> int:
    """The id of a child that does the work and leaves, with 1 if it raised."""
    with warnings.catch_warnings():
        # From Python 3.12 on, os.fork warns of threads; the child only writes files.
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
    """Saves the models in turn, for ever or so many times."""

    def work() -> None:
        for model in islice(cycle(models), times):
            save(model, path, probe=False, **options)

    return work


def exit_code(child: int) -> int:
    """As subprocess gives it: negative for the signal that ended the child."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stopped_mid_save(models: list[Model], path: Path, draw: random.Random) -> tuple[int, set[str]]:
    """A living child that stands still with a half-written file of its own, and that file."""
    before = beside(path)
    child = forked(saving(models, path, times=400))
    while True:
        time.sleep(draw.uniform(0, 0.01))
        os.kill(child, signal.SIGSTOP)
        _, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the child ended before it could be stopped within a save"
        written = beside(path) - before
        if written:
            return child, written
        os.kill(child, signal.SIGCONT)


def play_kills(
    path: Path, models: list[Model], draw: random.Random, **options: Any
) -> dict[str, Any]:
    started = time.monotonic()
    saving(models[::-1], path, times=2, **options)()
    save_time = (time.monotonic() - started) / 2
    held, exits, interrupted = [0], [], 0
    for _ in range(KILLS):
        before = beside(path)
        other = models[::-1] if held[-1] == 0 else models
        child = forked(saving(other, path, **options))
        time.sleep(draw.uniform(0.1, 3) * save_time)
        os.kill(child, signal.SIGKILL)
        exits.append(exit_code(child))
        held.append(held_by(path, models))
        interrupted += bool(beside(path) - before)
    save(models[0], path, **options)
    return {"held": held, "exits": exits, "interrupted": interrupted, "left": sorted(beside(path))}


def play_stop(path: Path, models: list[Model], draw: random.Random) -> dict[str, Any]:
    save(models[0], path)
    seen = []
    for _ in range(5):
        child, written = stopped_mid_save(models[:1], path, draw)
        save(models[1], path)
        seen.append({"written": sorted(written), "kept": sorted(written & beside(path))})
        seen[-1]["held"] = held_by(path, models)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.05)
        ended, status = os.waitpid(child, os.WNOHANG)
        seen[-1]["failed"] = bool(ended) and status != 0
        if not ended:
            os.kill(child, signal.SIGKILL)
            exit_code(child)
    return {"seen": seen}


def play_race(path: Path, models: list[Model], times: int, **options: Any) -> dict[str, Any]:
    save(models[0], path, **options)
    running = [forked(saving([model], path, times=times, **options)) for model in models]
    held, exits = [], []
    while running:
        held.append(held_by(path, models))
        for child in list(running):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                running.remove(child)
                exits.append(os.waitstatus_to_exitcode(status))
    return {"held": held, "exits": exits, "left": sorted(beside(path))}


def play_ranks(path: Path, models: list[Model], **options: Any) -> dict[str, Any]:
    """Three processes of one training save at once; the first has another model than the others."""

    def work(rank: int) -> Callable[[], None]:
        def saves() -> None:
            os.environ["RANK"] = str(rank)
            saving([models[1 if rank == 0 else 0]], path, times=10, **options)()

        return saves

    save(models[0], path, **options)
    children = [forked(work(rank)) for rank in (2, 0, 1)]
    exits = [exit_code(child) for child in children]
    return {"exits": exits, "held": held_by(path, models), "left": sorted(beside(path))}


def play_limit(path: Path, models: list[Model]) -> dict[str, Any]:
    save(models[0], path)
    said = path.with_suffix(".said")

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            save(models[1], path)
        except ArtifactError as error:
            said.write_text(str(error))

    code = exit_code(forked(work))
    words = said.read_text() if said.exists() else ""
    said.unlink(missing_ok=True)
    return {
        "exit": code,
        "said": words,
        "held": held_by(path, models),
        "left": sorted(beside(path)),
    }


def play(folder: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    models, draw = [large_model(0), large_model(1)], random.Random()

    def at(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name / "model.safetensors"

    return {
        "kills": play_kills(at("kills"), models, draw),
        "shards": play_kills(folder / "sharded", models, draw, shard_bytes="400kB"),
        "stop": play_stop(at("stop"), models, draw),
        "race": play_race(at("race"), models, times=30),
        "race of shards": play_race(folder / "raced", models, times=10, shard_bytes="400kB"),
        "ranks": play_ranks(at("ranks"), models),
        "ranks with shards": play_ranks(folder / "ranked", models, shard_bytes="400kB"),
        "limit": play_limit(at("limit"), models),
    }


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened to the processes, all played from one that imported torch once."""
    folder = tmp_path_factory.mktemp("kill")
    command = [sys.executable, __file__, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("form", ["kills", "shards"])
def test_a_process_killed_at_any_moment_leaves_the_old_model_or_the_new_one(
    seen: dict[str, Any], form: str
) -> None:
    kills = seen[form]
    assert kills["exits"] == [-signal.SIGKILL] * KILLS
    assert len(kills["held"]) == 1 + KILLS
    assert set(kills["held"]) == {0, 1}
    assert kills["interrupted"] >= 3, "too few kills fell within a save to prove anything"


@pytest.mark.parametrize("form", ["kills", "shards"])
def test_a_later_save_removes_what_a_killed_process_left(seen: dict[str, Any], form: str) -> None:
    assert seen[form]["interrupted"] >= 3
    assert seen[form]["left"] == []


def test_a_half_written_file_of_a_living_process_is_left_to_it(seen: dict[str, Any]) -> None:
    for moment in seen["stop"]["seen"]:
        assert moment["written"] != []
        assert moment["kept"] == moment["written"]
        assert moment["held"] == 1
        assert not moment["failed"]


@pytest.mark.parametrize("form", ["race", "race of shards"])
def test_two_processes_saving_at_once_leave_one_of_the_two_whole(
    seen: dict[str, Any], form: str
) -> None:
    race = seen[form]
    assert race["exits"] == [0, 0]
    assert set(race["held"]) == {0, 1}
    assert race["left"] == []


@pytest.mark.parametrize("form", ["ranks", "ranks with shards"])
def test_of_several_ranks_only_the_first_replaces_the_model(
    seen: dict[str, Any], form: str
) -> None:
    assert seen[form] == {"exits": [0, 0, 0], "held": 1, "left": []}


def test_a_file_that_may_not_grow_leaves_the_old_one_and_no_half(seen: dict[str, Any]) -> None:
    limit = seen["limit"]
    assert limit["exit"] == 0
    assert "could not be written" in limit["said"]
    assert "too large" in limit["said"].lower()
    assert "what was there is unchanged" in limit["said"]
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
        pytest.skip("there is no mount command to make a small disk with")
    if made.returncode:
        pytest.skip(f"mounting a small disk is not permitted here: {made.stderr.strip()}")


@pytest.fixture(scope="module")
def small() -> Model:
    return compose("bahdanau-reversal", seed=2)


def test_a_full_disk_is_said_plainly_and_leaves_the_old_file(
    small_disk: Path, small: Model
) -> None:
    file = save(small, small_disk / "model.safetensors")
    with pytest.raises(ArtifactError) as caught:
        save(large_model(0), file)
    assert "the disk is full" in str(caught.value)
    assert "what was there is unchanged" in str(caught.value)
    assert held_by(file, [small]) == 0
    assert beside(file) == set()


def test_a_full_disk_leaves_nothing_where_there_was_nothing(small_disk: Path) -> None:
    with pytest.raises(ArtifactError, match="the disk is full"):
        save(large_model(0), small_disk / "model.safetensors")
    assert list(small_disk.iterdir()) == []


def test_a_full_disk_leaves_the_old_shards(small_disk: Path, small: Model) -> None:
    folder = save(small, small_disk / "model", shard_bytes="100kB")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(before) > 2
    with pytest.raises(ArtifactError, match=r"the disk is full.*what was there is unchanged"):
        save(large_model(0), folder, shard_bytes="100kB")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(ArtifactError, match="the disk is full"):
        save(large_model(0), small_disk / "new", shard_bytes="100kB")
    assert [path.name for path in small_disk.iterdir()] == ["model"]


def test_a_disk_that_cannot_be_written_to_is_said_plainly(small_disk: Path, small: Model) -> None:
    file = save(small, small_disk / "m.safetensors")
    folder = save(small, small_disk / "model", shard_bytes="100kB")
    mount("-o", "remount,ro", str(small_disk))
    for path, size in ((file, None), (folder, "100kB"), (small_disk / "new", "100kB")):
        with pytest.raises(ArtifactError, match="could not be written: read-only file system"):
            save(small, path, shard_bytes=size)
    assert held_by(file, [small]) == held_by(folder, [small]) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_without_the_right_to_write_is_said_plainly(tmp_path: Path, small: Model) -> None:
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
def test_foreign_files_beside_the_target_are_no_business_of_a_save(
    tmp_path: Path, small: Model, owner: str
) -> None:
    foreign = tmp_path / f".model.safetensors.{owner}.draft.part"
    foreign.write_text("mine")
    file = save(small, tmp_path / "model.safetensors")
    assert beside(file) == {foreign.name}


if __name__ == "__main__":
    print(json.dumps(play(Path(sys.argv[1]))))
