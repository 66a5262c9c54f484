"""Work for the tests of worker pools, which the workers import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
    if kind == "child":
        crash_with_a_child(file)
    if kind == "endless":
        while True:
            signal.pause()


def crash_with_a_child(file: Path) -> None:
    """Exit, and leave a process that holds a lock, and writes a file after a while."""
    code = (
        "import fcntl, sys, time\n"
        "lock = open(sys.argv[1] + '.lock', 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('locked', flush=True); time.sleep(60); open(sys.argv[1] + '.survived', 'w')\n"
    )
    arguments = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os._exit(7)
