"""Commands on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

ZOO = [sys.executable, "-m", "zoo"]


def run_on_terminal(command: list[str], env: Mapping[str, str], here: Path, *, code: int) -> str:
    """Return the standard error of a command on a terminal of 100 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with subprocess.Popen(command, env=env, cwd=here, stderr=slave, text=True) as process:
        os.close(slave)
        written = b""
        try:
            while chunk := os.read(master, 4096):
                written += chunk
        except OSError:
            pass  # end of the terminal
        os.close(master)
        assert process.wait(60) == code
    return written.decode()
