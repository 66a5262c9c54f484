"""The log of a run: one JSON object per line, and trackers."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from zoo.errors import ZooError
from zoo.files import check_regular, os_error_message
from zoo.training.processes import Processes


class RunLog:
    """Appends to ``log.jsonl`` and to the trackers; on the main process only.

    Args:
        size: size of the log at the checkpoint from which the run continues; what was written
            after it is removed.
        step: the step of that checkpoint.
    """

    def __init__(self, path: Path, processes: Processes, *, size: int = 0, step: int = 0) -> None:
        self.path = path
        self._accelerator = processes.accelerator
        self._file = None
        if processes.is_main:
            try:
                self._file = open_to_append(path, size)
            except OSError as error:
                raise ZooError(f"{path} cannot be written: {os_error_message(error)}") from None

    def start_trackers(self, trackers: Sequence[str], config: Mapping[str, Any], step: int) -> None:
        """Start the trackers; TensorBoard hides what was logged after `step`."""
        if trackers:
            options = {"tensorboard": {"purge_step": step + 1}} if "tensorboard" in trackers else {}
            self._accelerator.init_trackers("tensorboard", _flatten(config), options)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append a line, and send its numbers to the trackers."""
        if self._file is None:
            return
        print(json.dumps(entry), file=self._file, flush=True)
        values = {key: value for key, value in entry.items() if isinstance(value, (int, float))}
        if self._accelerator.trackers:
            self._accelerator.log(values, step=entry["step"])

    def size(self) -> int:
        """Flush the log to the disk, and return its size in bytes."""
        if self._file is None:
            return 0
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # the disk is full; `write` has raised the error
                self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def open_to_append(path: Path, size: int) -> TextIO:
    """Open a text file, created if it does not exist, and cut it to at most `size` bytes.

    Raises OSError for anything that is not a regular file, also for a symbolic link.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, not a regular file", os.fspath(path))
    fd = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    try:
        state = os.fstat(fd)
        check_regular(path, state.st_mode)
        os.ftruncate(fd, min(size, state.st_size))
    except OSError:
        os.close(fd)
        raise
    return open(fd, "a", encoding="utf-8")


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping as one of dotted names and simple values, for trackers."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, (int, float, str)) else str(value)
    return flat
