"""The processes of `zoo.data.limited_process`. Imports nothing that is slow to import."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

OUT_OF_TIME, OUT_OF_MEMORY = 1, 3
"""Exit codes; the first is that of faulthandler."""


def main() -> None:
    """Call the function for each pair of lines of standard input: limits and arguments, in JSON.

    Writes a line before the first call, and one for each call.
    """
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    module, name = sys.argv[1].split(":")
    function = getattr(import_module(module), name)()
    threading.stack_size(2**20)  # of the watchdog
    used = _restrict()
    _write(replies, b"{}")
    while line := requests.readline():
        limits = json.loads(line)
        _limit_memory(used + limits["memory"])
        faulthandler.dump_traceback_later(limits["seconds"], exit=True)  # without the GIL
        try:
            reply = _call(function, requests.readline(), limits["result"])
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        faulthandler.cancel_dump_traceback_later()
        _write(replies, reply)


def _call(function: Callable[..., Any], arguments: bytes, max_result: int) -> bytes:
    try:
        reply = {"result": function(**json.loads(arguments))}
    except MemoryError:
        raise
    except Exception as error:
        reply = {"error": str(error)[:300] or type(error).__name__}
    encoded = json.dumps(reply).encode()
    if len(encoded) > max_result:
        encoded = json.dumps({"error": f"returns more than {max_result:,} bytes"}).encode()
    return encoded


def _write(replies: BinaryIO, reply: bytes) -> None:
    replies.write(reply + b"\n")
    replies.flush()


def _restrict() -> int:
    """Disable core dumps; return the size of the address space, 0 where it cannot be limited."""
    if sys.platform != "linux":
        return 0
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _limit_memory(size: int) -> None:
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        soft = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
