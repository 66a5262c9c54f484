"""The folder of a run: held by one run at a time, opened before the training, removed if empty."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from zoo.errors import ZooError, one_line, truncate
from zoo.files import check_regular, os_error_message
from zoo.training.checkpoint import find_checkpoints, remove_unfinished
from zoo.training.processes import Processes
from zoo.training.run_files import check_outputs

LOCK_FILE = ".lock"
_MAX_OWNER = 200


@contextlib.contextmanager
def lock_run(folder: Path, processes: Processes) -> Iterator[None]:
    """Hold the lock of a run folder; the main process holds it for all processes of the run.

    Raises:
        ZooError: on all processes, if another process holds it.
    """
    with contextlib.ExitStack() as stack:
        with processes.fail_together():
            if processes.is_main:
                stack.enter_context(lock_folder(folder))
        yield


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and hold its lock inside the block.

    The lock is a record lock of the kernel on the file `LOCK_FILE`, which has the process ID. It
    ends with the process, however that ends, and processes that it starts do not inherit it. File
    systems without locks, and Windows, have none.

    Raises:
        ZooError: if another process holds the lock, or the folder cannot be created.
    """
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _acquire(path)
    except OSError as error:
        raise ZooError(f"{path} cannot be created: {os_error_message(error)}") from None
    if file is None:
        owner = truncate(one_line(_read_owner(path)), _MAX_OWNER)
        raise ZooError(
            f"{folder} is in use by {owner}; wait until it ends, or use another folder with -o"
        )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(file)


def _acquire(path: Path) -> int | None:
    """Return the descriptor of the locked file, or None if another process has locked it."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            check_regular(path, os.lstat(path).st_mode)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _try_lock(file):
            os.close(file)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
        os.close(file)  # the process that held it has removed it since
    os.ftruncate(file, 0)
    os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return file


def _try_lock(file: int) -> bool:
    """Lock a file for this process; return whether no other process has locked it."""
    if sys.platform == "win32":
        return True
    import errno
    import fcntl

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def _read_owner(path: Path) -> str:
    """Return the process that holds the lock, in words."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(_MAX_OWNER) or "another process"
    return "another process"


LOG_FILE = "log.jsonl"
SPEC_FILE = "spec.yaml"
MODEL_FILE = "model.safetensors"
PLOT_FILE = "loss.png"
CHECKPOINTS = "checkpoints"


@contextlib.contextmanager
def hold_folder(folder: Path, processes: Processes) -> Iterator[None]:
    """Hold the lock of a folder in the block; then remove folders of a run that saved nothing.

    Raises:
        ZooError: on all processes, if another process holds the lock.
    """
    is_new, is_held = not folder.exists(), False
    try:
        with lock_run(folder, processes):
            is_held = True
            try:
                yield
            finally:
                _remove_empty(folder / CHECKPOINTS, processes)
    finally:
        if is_new and is_held:
            _remove_empty(folder, processes)


def _remove_empty(folder: Path, processes: Processes) -> None:
    if processes.is_main:
        with contextlib.suppress(OSError):  # it is not empty, or does not exist
            folder.rmdir()


def open_folder(folder: Path, processes: Processes, *, resume: bool) -> Path | None:
    """Create the folders of a run; return its newest checkpoint. Called by all processes.

    Raises:
        ZooError: if the folder has a run that is not resumed, or cannot be written.
    """
    checkpoints = folder / CHECKPOINTS
    used = (folder / LOG_FILE).exists() or bool(find_checkpoints(checkpoints))
    processes.barrier()
    if used and not resume:
        raise ZooError(f"{folder} contains a run; continue it with --resume, or use another folder")
    if processes.is_main:
        check_outputs(folder, (LOG_FILE, SPEC_FILE, MODEL_FILE, PLOT_FILE))
        try:
            checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ZooError(f"{checkpoints} cannot be created: {error.strerror}") from None
        remove_unfinished(checkpoints)
    processes.barrier()
    found = find_checkpoints(checkpoints)
    return found[-1] if found else None
