"""A process that holds the lock of a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import sys
from pathlib import Path
from zoo.training.run_folder import lock_folder

with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def lock_in_process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that holds the lock of a folder inside the block."""
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"locked\n"
        try:
            yield process
        finally:
            process.stdin.close()
