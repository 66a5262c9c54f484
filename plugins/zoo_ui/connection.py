"""A connection to a client that may be slow, silent, or one of very many."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Limits:
    """Limits of all connections.

    Args:
        head_seconds: how long a client may take from the connection, or from the response before,
            to the end of the headers of its request.
        body_seconds: how long it may take to send the body.
        write_seconds: how long it may leave the response unread while more is to be sent.
        connections: open connections; of more, the one that has sent no request for the longest
            time is ended.
    """

    head_seconds: float = 20.0
    body_seconds: float = 300.0
    write_seconds: float = 60.0
    connections: int = 256


class LimitedConnection(H11Protocol):
    """uvicorn's connection, which limits the time between requests only, with further limits.

    The time is that of the whole headers or body, so bytes that come one by one do not extend it.
    """

    limits: ClassVar[Limits] = Limits()

    @classmethod
    def with_limits(cls, limits: Limits) -> type[LimitedConnection]:
        return type(cls.__name__, (cls,), {"limits": limits})

    _waits_for: type[h11.IDLE] | type[h11.SEND_BODY] | None = None
    _since: float = 0.0
    _read_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.limits.connections:
            waiting = [each for each in self.connections if isinstance(each, LimitedConnection)]
            silent = [each for each in waiting if each._waits_for is h11.IDLE]
            min(silent, key=lambda each: each._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._read_timer, self._write_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # invalid data after the response, which cannot be answered
            self.transport.abort()
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self._discard)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _discard(self) -> None:
        """End the connection with what the system still holds for a client that does not read."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def _wait(self) -> None:
        """Start the time of what the client has to send next, if it is not already running."""
        state = self.conn.their_state
        waits_for = state if state in (h11.IDLE, h11.SEND_BODY) else None
        if waits_for is self._waits_for or self.transport.is_closing():
            return
        if self._read_timer is not None:
            self._read_timer.cancel()
        self._waits_for, self._since = waits_for, self.loop.time()
        if waits_for is not None:
            seconds = {h11.IDLE: self.limits.head_seconds, h11.SEND_BODY: self.limits.body_seconds}
            self._read_timer = self.loop.call_later(seconds[waits_for], self.transport.abort)
