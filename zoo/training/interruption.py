"""Signals that end a run after its current step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from zoo.errors import ZooError

_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class Interrupted(ZooError):
    """Raised when a signal has ended a run, after a checkpoint was saved.

    Attributes:
        exit_code: 128 and the number of the signal, as shells report it.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM in a block of `raise_on_sigterm`."""

    exit_code = 128 + signal.SIGTERM


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM inside a block, as Ctrl-C raises KeyboardInterrupt.

    It is raised once: ``timeout`` sends the signal twice. A training in the block still ends after
    its current step.
    """

    def receive(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class Signals:
    """Records SIGTERM and Ctrl-C inside a block; a second Ctrl-C raises KeyboardInterrupt.

    Python handles signals in the main thread only; in other threads nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in _NAMES:
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
    def name(self) -> str:
        """The signal in words; another process may have received it."""
        number = self.received or signal.SIGTERM
        return _NAMES[signal.Signals(number)]

    @property
    def exit_code(self) -> int:
        return 128 + (self.received or signal.SIGTERM)
