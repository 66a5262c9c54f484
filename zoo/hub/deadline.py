"""Limits on slow responses.

`HF_HUB_DOWNLOAD_TIMEOUT` limits the time without any data. A server that sends a byte from time to
time never reaches this limit. Therefore the time until the headers are complete is limited too, and
the body must arrive at a minimum rate, measured over periods of `HF_HUB_DOWNLOAD_TIMEOUT` seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

MIN_BYTES_PER_SECOND = 1_000
_STEPS = 3
"""Connecting, sending the request and receiving the headers may each take the timeout."""


@contextlib.contextmanager
def open_response(
    response: contextlib.AbstractContextManager[Any], timeout: float
) -> Iterator[Any]:
    """Enter a response, which waits for its headers; raise TimeoutError if they take too long.

    A thread waits for them, because the HTTP library limits only the time between two bytes. If
    they take too long, the thread closes the response later.
    """
    opened: Future[Any] = Future()
    lock = threading.Lock()
    is_abandoned = False

    def enter() -> None:
        try:
            entered = response.__enter__()
        except BaseException as error:
            opened.set_exception(error)
            return
        with lock:
            if not is_abandoned:
                opened.set_result(entered)
                return
        response.__exit__(None, None, None)

    def abandon() -> bool:
        nonlocal is_abandoned
        with lock:
            is_abandoned = not opened.done()
        return is_abandoned

    threading.Thread(target=enter, daemon=True).start()
    try:
        opened.exception(_STEPS * timeout)
    except TimeoutError:
        if abandon():
            reason = f"no complete headers after {_STEPS * timeout:g} s"
            raise TimeoutError(reason) from None
    except BaseException:  # Ctrl-C
        if not abandon() and opened.exception() is None:
            response.__exit__(None, None, None)
        raise
    entered = opened.result()
    with contextlib.ExitStack() as stack:
        stack.push(response.__exit__)
        yield entered


def iter_chunks(response: Any, timeout: float) -> Iterator[bytes]:
    """Yield the body of a response; raise TimeoutError if it arrives too slowly."""
    received, waited = 0, 0.0
    chunks = iter(response.iter_bytes())
    while True:
        started = time.monotonic()
        chunk = next(chunks, None)
        if chunk is None:
            return
        received, waited = received + len(chunk), waited + time.monotonic() - started
        if waited >= timeout:
            if received < MIN_BYTES_PER_SECOND * waited:
                raise TimeoutError(
                    f"{received:,} bytes in {waited:.3g} s; at least {MIN_BYTES_PER_SECOND:,} per "
                    "second are required"
                )
            received, waited = 0, 0.0
        yield chunk
