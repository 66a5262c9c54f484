"""The log of a run: one JSON object per line, trackers, and a plot."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from zoo.errors import ZooError
from zoo.files import check_regular, os_error_message, split_lines
from zoo.plotting import BLUE, GREY, ORANGE, new_figure, style_axes, write_png
from zoo.training.processes import Processes
from zoo.training.run_files import DamagedFile, decode, parse_object, read_bytes

_ADVICE = "remove it: the training does not need it"
_MAX_BYTES = 2**32


class RunLog:
    """Appends to ``log.jsonl`` and to the trackers; on the main process only.

    Args:
        size: size of the log at the checkpoint from which the run continues; what was written
            after it is removed.

    Raises:
        ZooError: if what was written before the checkpoint is damaged. A log that is missing is
            started again.
    """

    def __init__(self, path: Path, processes: Processes, *, size: int = 0) -> None:
        self.path = path
        self._accelerator = processes.accelerator
        self._file = None
        if processes.is_main:
            if size and path.exists():
                check_log(path, size)
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
    """Return the lines of a log; raise ZooError if one of them is damaged."""
    return _parse(path, read_bytes(path, _ADVICE, _MAX_BYTES))


def _parse(path: Path, content: bytes) -> list[dict[str, Any]]:
    entries = []
    for number, line in enumerate(split_lines(decode(content, path, _ADVICE)), start=1):
        entry = parse_object(line, path, _ADVICE, f"line {number}")
        values = [entry.get("step"), *(entry[key] for key in ("loss", "lr") if key in entry)]
        if not all(isinstance(value, (int, float)) for value in values):
            raise DamagedFile(path, f"line {number} is not an entry of a log", _ADVICE)
        entries.append(entry)
    return entries


def check_log(path: Path, size: int) -> None:
    """Raise ZooError if the first bytes of a log, this many, are not whole lines of a log."""
    content = read_bytes(path, _ADVICE, _MAX_BYTES)
    if len(content) < size:
        raise DamagedFile(path, f"it has {len(content):,} of {size:,} bytes", _ADVICE)
    _parse(path, content[:size])


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


_PREFIX = "validation_"


def plot_log(log: Path, target: Path, title: str) -> None:
    """Save a plot of the losses, the results on the validation data, and the learning rate.

    Raises:
        ZooError: if matplotlib is not installed, or the file cannot be written.
    """
    entries = read_log(log)
    train = [entry for entry in entries if "loss" in entry]
    if not train:
        return
    results = _results(entries)
    metrics = [name for name in results if name != "loss"]
    rows = 2 + len(metrics)
    heights = [3, *([1.4] * len(metrics)), 1]
    figure = new_figure(7, 1.3 * sum(heights))
    axes: Sequence[Any] = figure.subplots(rows, 1, sharex=True, height_ratios=heights)
    steps = [entry["step"] for entry in train]
    losses = [entry["loss"] for entry in train]
    axes[0].plot(steps, losses, color=BLUE, label="training")
    if "loss" in results:
        _plot_results(axes[0], results["loss"], label="validation")
        axes[0].legend(frameon=False)
    _label(axes[0], "loss")
    axes[0].set_title(title, loc="left", fontsize=11)
    for axis, name in zip(axes[1:], metrics, strict=False):
        _plot_results(axis, results[name])
        _label(axis, name)
    axes[-1].plot(steps, [entry["lr"] for entry in train], color=GREY)
    axes[-1].set_ylim(bottom=0)
    axes[-1].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    _label(axes[-1], "learning rate")
    axes[-1].set_xlabel("step")
    write_png(figure, target, follow_links=False)


def _results(entries: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return steps and values of each result on the validation data."""
    results: dict[str, list[tuple[int, float]]] = {}
    for entry in entries:
        for key, value in entry.items():
            if key.startswith(_PREFIX):
                results.setdefault(key.removeprefix(_PREFIX), []).append((entry["step"], value))
    return results


def _plot_results(axis: Any, points: list[tuple[int, float]], label: str = "") -> None:
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) <= 50 else None
    axis.plot(steps, values, color=ORANGE, marker=marker, markersize=3, label=label)


def _label(axis: Any, name: str) -> None:
    axis.set_ylabel(name)
    style_axes(axis)
