"""Work for the tests of worker pools, which the workers import."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from zoo import ZooError


def work(task: tuple[str, Path]) -> None:
    """Write the process ID to a file, and end as the task says."""
    kind, file = task
    file.write_text(str(os.getpid()))
    if kind == "error":
        raise ZooError("the spec is wrong")
    if kind == "bug":
        raise RuntimeError("the device is lost")
    if kind == "crash":
        os._exit(7)
    if kind == "endless":
        while True:
            signal.pause()
