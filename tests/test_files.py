"""Atomic replacement, removal of the staging directories of processes that have ended, reading."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from windows_kit import run_as_windows

from zoo.files import atomic_write, lock_dir, read_limited, remove_stale, staging_dir


@pytest.fixture
def dead() -> int:
    """The ID of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def leave_staging_dir(target: Path, process: int) -> Path:
    staging = target.with_name(f".{target.name}.{process}.0123abcd.part")
    staging.mkdir()
    (staging / "new").write_text("half")
    return staging


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_locked_staging_dir_of_another_container_stays(target: Path, dead: int) -> None:
    """Its process ID is not valid here, but its lock is."""
    staging = leave_staging_dir(target, dead)
    fd = os.open(staging, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    remove_stale(target)
    assert (staging / "new").read_text() == "half"
    os.close(fd)
    remove_stale(target)
    assert not staging.exists()


def test_stale_staging_dir_is_removed_if_its_process_id_is_in_use_again(target: Path) -> None:
    staging = leave_staging_dir(target, os.getpid())
    remove_stale(target)
    assert not staging.exists()


def test_staging_dir_stays_locked_until_the_block_ends(target: Path) -> None:
    with staging_dir(target) as staging:
        with staging_dir(target) as other:
            assert staging.is_dir()
            assert other != staging
        assert staging.is_dir()
    assert list(target.parent.iterdir()) == []


def test_staging_dir_removed_before_it_was_locked_is_created_again(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def remove_first(fd: int, operation: int) -> None:
        if not removed:
            removed.extend(target.parent.iterdir())
            removed[0].rmdir()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with staging_dir(target) as staging:
        assert staging.is_dir()
        assert staging not in removed


def test_empty_staging_dir_belongs_to_the_process_it_names(target: Path, dead: int) -> None:
    stale, alive = leave_staging_dir(target, dead), leave_staging_dir(target, os.getpid())
    for staging in (stale, alive):
        (staging / "new").unlink()
    remove_stale(target)
    assert not stale.exists()
    assert alive.exists()


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_process_id_decides(target: Path, dead: int) -> None:
    stale, alive = leave_staging_dir(target, dead), leave_staging_dir(target, os.getpid())
    with atomic_write(target) as temporary:
        temporary.write_text("whole")
    assert not stale.exists()
    assert alive.exists()
    assert target.read_text() == "whole"


def test_other_kinds_of_files_with_such_a_name_stay(target: Path, dead: int) -> None:
    pipe = target.with_name(f".{target.name}.{dead}.0123abcd.part")
    os.mkfifo(pipe)
    remove_stale(target)
    assert pipe.exists()


def test_locking_a_directory_leaves_no_file(tmp_path: Path) -> None:
    with lock_dir(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_locked_directory_makes_other_processes_wait(tmp_path: Path) -> None:
    """The child must not enter the block before the parent leaves it."""
    code = (
        "import sys; from pathlib import Path; from zoo.files import lock_dir\n"
        "print('started', flush=True)\n"
        "with lock_dir(Path(sys.argv[1])): print(Path(sys.argv[1], 'state').read_text())"
    )
    with lock_dir(tmp_path):
        (tmp_path / "state").write_text("locked")
        child = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        (tmp_path / "state").write_text("released")
    assert child.communicate(timeout=60)[0] == "released\n"


WINDOWS = """
import os, sys
from pathlib import Path
from zoo.files import atomic_write, lock_dir, remove_stale, staging_dir
folder = Path(sys.argv[1])
target = folder / "zoo.lock"
for text in ("old", "new"):
    with lock_dir(folder), atomic_write(target) as temporary:
        temporary.write_text(text)
print(target.read_text(), sorted(os.listdir(folder)))
with staging_dir(target) as staging:
    (staging / "new").write_text("half")
    remove_stale(target)
    print((staging / "new").read_text())
stale = folder / f".zoo.lock.{os.getpid()}.0123abcd.part"
stale.mkdir()
(stale / "new").write_text("half")
remove_stale(target)
print(sorted(os.listdir(folder)))
"""


def test_windows_replaces_locks_and_removes_stale(tmp_path: Path) -> None:
    assert run_as_windows(WINDOWS, tmp_path).splitlines() == [
        "new ['zoo.lock']",
        "half",
        "['zoo.lock']",
    ]


def test_a_file_is_read_up_to_a_limit_without_memory_for_the_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"ab" * 2**20)
    with open(path, "rb") as file:
        assert read_limited(file, 10**18) == path.read_bytes()
    for limit in (2**21 - 1, 3):
        with open(path, "rb") as file:
            assert read_limited(file, limit) == path.read_bytes()[: limit + 1]


def test_an_error_of_the_temporary_directory_names_the_target(tmp_path: Path) -> None:
    target = tmp_path / ("a" * 250)  # a valid name, but not with that of the process
    with pytest.raises(OSError, match="too long") as raised, atomic_write(target):
        pass
    assert raised.value.filename == str(target)
