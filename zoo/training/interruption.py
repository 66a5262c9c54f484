"""Signals that end a run after its current step."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from zoo.errors import ZooError

_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}
if sys.platform != "win32":
    _NAMES[signal.SIGHUP] = "SIGHUP"


class Interrupted(ZooError):
    """Raised when a signal has ended a run, after a checkpoint was saved.

    Attributes:
        exit_code: 128 and the number of the signal, as shells report it.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def is_ignored(number: int) -> bool:
    """Return whether the process was started to ignore a signal, as ``nohup`` does."""
    return number not in (signal.SIGTERM, signal.SIGINT) and (
        signal.getsignal(number) is signal.SIG_IGN
    )


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM and SIGHUP in a block of `raise_on_termination`.

    Attributes:
        exit_code: 128 and the number of the signal, as shells report it.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextmanager
def raise_on_termination() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM and SIGHUP inside a block, as Ctrl-C KeyboardInterrupt.

    It is raised once: ``timeout`` sends the signal twice. A training in the block still ends after
    its current step.
    """

    def receive(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Terminated(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in _NAMES if n != signal.SIGINT and not is_ignored(n)]
    previous = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Signals:
    """Records SIGTERM, SIGHUP and Ctrl-C inside a block; a second Ctrl-C raises KeyboardInterrupt.

    Python handles signals in the main thread only; in other threads nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (n for n in _NAMES if not is_ignored(n)):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number

    @property
    def name(self) -> str | None:
        """The signal in words, or None."""
        return None if self.received is None else _NAMES[signal.Signals(self.received)]

    @property
    def exit_code(self) -> int | None:
        return None if self.received is None else 128 + self.received
