"""Files replaced whole or not at all; the half files of the dead are swept, others' are not."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zoo.files import replacing, room_for, sweep


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
    room = target.with_name(f".{target.name}.{process}.0123abcd.part")
    room.mkdir()
    (room / "new").write_text("half")
    return room


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_what_a_process_of_another_container_is_writing_is_left_to_it(
    target: Path, dead: int
) -> None:
    """Its number means nothing here; the lock it holds does."""
    room = left(target, dead)
    opened = os.open(room, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    sweep(target)
    assert (room / "new").read_text() == "half"
    os.close(opened)
    sweep(target)
    assert not room.exists()


def test_what_was_left_is_swept_though_its_number_is_in_use_again(target: Path) -> None:
    room = left(target, os.getpid())
    sweep(target)
    assert not room.exists()


def test_a_room_is_locked_for_as_long_as_it_is_used(target: Path) -> None:
    with room_for(target) as room:
        with room_for(target) as other:
            assert room.is_dir()
            assert other != room
        assert room.is_dir()
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
    with room_for(target) as room:
        assert room.is_dir()
        assert room not in seen


def test_a_room_that_is_not_locked_yet_belongs_to_the_process_it_names(
    target: Path, dead: int
) -> None:
    gone, living = left(target, dead), left(target, os.getpid())
    for room in (gone, living):
        (room / "new").unlink()
    sweep(target)
    assert not gone.exists()
    assert living.exists()


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_number_of_the_process_decides(target: Path, dead: int) -> None:
    gone, living = left(target, dead), left(target, os.getpid())
    with replacing(target) as beside:
        beside.write_text("whole")
    assert not gone.exists()
    assert living.exists()
    assert target.read_text() == "whole"


def test_a_file_by_such_a_name_is_somebody_elses(target: Path, dead: int) -> None:
    odd = target.with_name(f".{target.name}.{dead}.0123abcd.part")
    os.mkfifo(odd)
    sweep(target)
    assert odd.exists()
