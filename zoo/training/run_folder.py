"""The folder of a run: held by one run at a time, opened before the training, removed if empty."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from zoo.errors import ZooError
from zoo.training.checkpoint import find_checkpoints, remove_unfinished
from zoo.training.processes import Processes
from zoo.training.run_files import check_outputs
from zoo.training.run_lock import lock_run

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
