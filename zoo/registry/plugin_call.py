"""Calls of plugin code that must not end the program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class PluginExit(Exception):
    """Raised when plugin code exits or interrupts the program; the cause is what it raised."""


class PluginCall:
    """Context manager for a call of plugin code.

    SystemExit, KeyboardInterrupt and everything else that is not an `Exception` is raised as
    `PluginExit`, unless the process received a signal, such as Ctrl-C. Signal handlers run in the
    main thread only, so other threads need no check.
    """

    def __enter__(self) -> Self:
        self._is_signalled = False
        self._handlers: dict[signal.Signals, Callable[..., Any]] = {}
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._is_signalled = True
        self._handlers[signal.Signals(number)](number, frame)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._handle:  # not replaced by the plugin
                signal.signal(number, handler)
        if error is not None and not isinstance(error, Exception) and not self._is_signalled:
            raise PluginExit(f"{type(error).__name__}: {error}") from error
