"""Run a script with the file functions that Windows has, in a process of its own.

The platform's functions are replaced, not the project's: directories cannot be opened, read-only
files cannot be flushed, `os.kill(pid, 0)` is Ctrl-C, `fcntl` is missing, `msvcrt` locks, and open
or mapped files can be neither removed nor replaced.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PREAMBLE = """
import errno, fcntl, os, shutil, sys, types

_open, _fsync, _unlink, _replace = os.open, os.fsync, os.unlink, os.replace

def open_file(path, flags, mode=0o777):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return _open(path, flags, mode)

def fsync(fd):
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    _fsync(fd)

def kill(pid, number):
    raise AssertionError("os.kill(pid, 0) is Ctrl-C on Windows")

def locking(fd, mode, count):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (fcntl.LOCK_NB if mode == 2 else 0))
    except BlockingIOError:
        raise OSError(errno.EACCES, "Permission denied") from None

def check_not_in_use(path):
    used = {os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")}
    with open("/proc/self/maps") as maps:
        used |= {line.split(maxsplit=5)[-1].strip() for line in maps}
    if os.path.realpath(path) in used:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

def unlink(path):
    check_not_in_use(path)
    _unlink(path)

def replace(source, target):
    check_not_in_use(source)
    check_not_in_use(target)
    _replace(source, target)

os.open, os.fsync, os.kill, os.unlink, os.replace = open_file, fsync, kill, unlink, replace
shutil._use_fd_functions = False
sys.modules["msvcrt"] = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=locking)
sys.modules["fcntl"] = None
sys.platform = "win32"
"""


def run_as_windows(script: str, *arguments: Path, imports: str = "import zoo.files") -> str:
    """Return what a script prints; `imports` are made before the platform's functions change."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    code = f"{imports}\n{PREAMBLE}\n{script}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
