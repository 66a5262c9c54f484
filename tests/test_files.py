"""Atomic writes: temporary files of dead processes are removed, those of others are not."""

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
    """The ID of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def leave_staging(target: Path, process: int) -> Path:
    staging = target.with_name(f".{target.name}.{process}.0123abcd.part")
    staging.mkdir()
    (staging / "new").write_text("partial")
    return staging


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", fail)


def test_a_locked_folder_of_another_container_is_kept(target: Path, dead: int) -> None:
    """The process ID has no meaning here, but the lock does."""
    staging = leave_staging(target, dead)
    opened = os.open(staging, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    remove_stale(target)
    assert (staging / "new").read_text() == "partial"
    os.close(opened)
    remove_stale(target)
    assert not staging.exists()


def test_an_unlocked_folder_is_removed_although_its_process_id_is_in_use(target: Path) -> None:
    staging = leave_staging(target, os.getpid())
    remove_stale(target)
    assert not staging.exists()


def test_a_staging_folder_is_locked_while_in_use(target: Path) -> None:
    with staging_dir(target) as staging:
        with staging_dir(target) as other:
            assert staging.is_dir()
            assert other != staging
        assert staging.is_dir()
    assert list(target.parent.iterdir()) == []


def test_a_staging_folder_removed_before_its_lock_is_created_again(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = fcntl.flock, []

    def flock_after_removal(opened: int, how: int) -> None:
        if not seen:
            seen.extend(target.parent.iterdir())
            seen[0].rmdir()
        real(opened, how)

    monkeypatch.setattr(fcntl, "flock", flock_after_removal)
    with staging_dir(target) as staging:
        assert staging.is_dir()
        assert staging not in seen


def test_an_empty_folder_belongs_to_the_process_in_its_name(target: Path, dead: int) -> None:
    gone, living = leave_staging(target, dead), leave_staging(target, os.getpid())
    for staging in (gone, living):
        (staging / "new").unlink()
    remove_stale(target)
    assert not gone.exists()
    assert living.exists()


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_process_id_decides(target: Path, dead: int) -> None:
    gone, living = leave_staging(target, dead), leave_staging(target, os.getpid())
    with atomic_write(target) as staged:
        staged.write_text("complete")
    assert not gone.exists()
    assert living.exists()
    assert target.read_text() == "complete"


def test_a_file_with_such_a_name_is_kept(target: Path, dead: int) -> None:
    fifo = target.with_name(f".{target.name}.{dead}.0123abcd.part")
    os.mkfifo(fifo)
    remove_stale(target)
    assert fifo.exists()
