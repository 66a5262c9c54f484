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
    main thread only, so other threads need no check. Calls inside of another call, such as those of
    the parts of a model, use its handlers: to replace handlers takes longer than to build a part.
    """

    def __enter__(self) -> Self:
        self._signals = 0
        self._handlers: dict[signal.Signals, Callable[..., Any]] = {}
        self._counts: list[PluginCall] = [self]
        """This call and the calls around it whose handlers count the signals."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                around = getattr(handler, "__self__", None)
                if isinstance(around, PluginCall):
                    self._counts.append(around)
                elif callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._handle)
        self._before = self._received()
        return self

    def _received(self) -> int:
        return sum(call._signals for call in self._counts)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
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
        is_exit = error is not None and not isinstance(error, Exception)
        if is_exit and self._received() == self._before:
            raise PluginExit(f"{type(error).__name__}: {error}") from error
