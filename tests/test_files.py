"""Files replaced whole or not at all; the half files of the dead are swept, others' are not."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zoo.files import atomic_write, remove_stale, staging_dir


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def left(target: Path, process: int) -> Path:
    staging = target.with_name(f".{target.name}.{process}.0123abcd.part")
    staging.mkdir()
    (staging / "new").write_text("half")
    return staging


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_what_a_process_of_another_container_is_writing_is_left_to_it(
    target: Path, dead: int
) -> None:
    """Its number means nothing here; the lock it holds does."""
    staging = left(target, dead)
    opened = os.open(staging, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    remove_stale(target)
    assert (staging / "new").read_text() == "half"
    os.close(opened)
    remove_stale(target)
    assert not staging.exists()


def test_what_was_left_is_swept_though_its_number_is_in_use_again(target: Path) -> None:
    staging = left(target, os.getpid())
    remove_stale(target)
    assert not staging.exists()


def test_a_room_is_locked_for_as_long_as_it_is_used(target: Path) -> None:
    with staging_dir(target) as staging:
        with staging_dir(target) as other:
            assert staging.is_dir()
            assert other != staging
        assert staging.is_dir()
    assert list(target.parent.iterdir()) == []


def test_a_room_swept_before_it_was_locked_is_made_again(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = fcntl.flock, []

    def late(opened: int, how: int) -> None:
        if not seen:
            seen.extend(target.parent.iterdir())
            seen[0].rmdir()
        real(opened, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with staging_dir(target) as staging:
        assert staging.is_dir()
        assert staging not in seen


def test_a_room_that_is_not_locked_yet_belongs_to_the_process_it_names(
    target: Path, dead: int
) -> None:
    gone, living = left(target, dead), left(target, os.getpid())
    for staging in (gone, living):
        (staging / "new").unlink()
    remove_stale(target)
    assert not gone.exists()
    assert living.exists()


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_number_of_the_process_decides(target: Path, dead: int) -> None:
    gone, living = left(target, dead), left(target, os.getpid())
    with atomic_write(target) as beside:
        beside.write_text("whole")
    assert not gone.exists()
    assert living.exists()
    assert target.read_text() == "whole"


def test_a_file_by_such_a_name_is_somebody_elses(target: Path, dead: int) -> None:
    odd = target.with_name(f".{target.name}.{dead}.0123abcd.part")
    os.mkfifo(odd)
    remove_stale(target)
    assert odd.exists()
