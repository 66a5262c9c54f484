"""Signals in worker processes: those that are sent to all processes are left to the main process.

Terminals send Ctrl-C and, when they are closed, SIGHUP, and tools such as ``timeout`` and Slurm
send SIGTERM, to the processes of a whole group. Workers that ended first would make the main
process fail in place of stopping.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Block signals while workers start, which inherit this until `leave_signals_to_parent`."""
    if sys.platform == "win32":
        yield
        return
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def unchanged_child_handler() -> Iterator[None]:
    """Keep the handler of SIGCHLD, for which a DataLoader sets its own when it starts workers.

    That one raises the error of a worker that was killed wherever the program is, for example in
    the middle of an update. Without it the error is raised when the next batch is needed.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGCHLD)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)


def leave_signals_to_parent(worker: int = 0) -> None:
    """Ignore Ctrl-C, SIGHUP and, on Linux, each SIGTERM that the parent process did not send.

    SIGTERM of the parent still ends the worker, as `multiprocessing` expects at the end of the
    program. A thread waits for the signal, because a handler in Python does not get its sender.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.platform == "linux":
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGTERM})
        threading.Thread(target=_end_with_parent, daemon=True).start()
    elif sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end_with_parent() -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
        pass
    os._exit(0)
