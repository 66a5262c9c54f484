"""A process that runs jobs for the server: it imports torch, so that the server does not.

It reads jobs from standard input and runs them one after the other. What components print goes to
standard error, so that it does not mix with the results.
"""

from __future__ import annotations

import importlib
import os
import queue
import sys
import threading
import traceback
from typing import Any, BinaryIO

from zoo_ui.frames import encode_frame, read_frame

JOBS = {
    "load": "zoo_ui.jobs.specs:load",
    "schema": "zoo_ui.jobs.specs:schema",
    "open": "zoo_ui.jobs.specs:open_spec",
    "recipe": "zoo_ui.jobs.specs:open_recipe",
    "check": "zoo_ui.jobs.specs:check",
    "candidate": "zoo_ui.jobs.specs:check_candidate",
    "starters": "zoo_ui.jobs.comparing:starters",
    "measure": "zoo_ui.jobs.comparing:measure",
    "laws": "zoo_ui.jobs.laws:run",
    "describe": "zoo_ui.jobs.models:describe",
    "run": "zoo_ui.jobs.models:run",
    "attend": "zoo_ui.jobs.models:attend",
}


class JobQueue:
    """The jobs that wait, and the numbers of those that are cancelled."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while (message := read_frame(self._stream)) is not None:
            if "cancel" in message:
                self._cancelled.add(message["cancel"])
            else:
                self._waiting.put(message)
        os._exit(0)  # the server has ended; a job may be running

    def get(self) -> dict[str, Any]:
        return self._waiting.get()

    def discard(self, number: int) -> bool:
        """Return whether a job has been cancelled before it starts; forget it and earlier ones."""
        was_cancelled = number in self._cancelled
        self._cancelled -= {each for each in tuple(self._cancelled) if each <= number}
        return was_cancelled


def main() -> None:
    """Run jobs until standard input ends."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    jobs = JobQueue(sys.stdin.buffer)
    session: dict[str, Any] = {}
    while True:
        message = jobs.get()
        if not jobs.discard(message["id"]):
            output.write(encode_frame({"id": message["id"], **_run(message, session)}))
            output.flush()


def _run(message: dict[str, Any], session: dict[str, Any]) -> dict[str, Any]:
    """Run a job; return its result or its error."""
    try:
        module, _, name = JOBS[message["job"]].partition(":")
        function = getattr(importlib.import_module(module), name)
        return {"result": function(session, **message["arguments"])}
    except BaseException as error:  # an exit of a component must not end the process
        return {"error": _describe(error)}


def _describe(error: BaseException) -> str:
    from zoo.errors import ZooError

    if isinstance(error, ZooError):
        return str(error)
    traceback.print_exc()
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
