"""The server's side of a worker process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from typing import Any

from zoo.errors import ZooError
from zoo_ui.frames import LENGTH_BYTES, encode_frame

_LONG_BYTES = 100_000


class WorkerClient:
    """A worker process, which starts with its first job, and again if it ends.

    Args:
        name: what it does, for messages.
        max_seconds: a job that takes longer is ended with its process.
    """

    def __init__(self, name: str, max_seconds: float) -> None:
        self.name = name
        self.max_seconds = max_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def start(self) -> asyncio.subprocess.Process:
        """Start the process, if it does not run."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-m", "zoo_ui.worker"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C reaches the server only, which ends it
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def stop(self) -> None:
        """End the process; its jobs fail."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader

    async def call(self, job: str, *, body: bytes | None = None, **arguments: Any) -> Any:
        """Return the result of a job; it is cancelled if nobody waits for it any more.

        Args:
            job: its name.
            body: the body of a request, which the job parses.
            arguments: further arguments of the job.

        Raises:
            ZooError: if the job fails, or takes too long.
        """
        process = await self.start()
        assert process.stdin is not None
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            message = {"id": number, "job": job, "arguments": arguments}
            await self._send(process, message, body)
            found = await self._wait(answer)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                process.stdin.write(encode_frame({"cancel": number}))
            raise
        finally:
            del self._answers[number]
        if "error" in found:
            raise ZooError(found["error"])
        return found["result"]

    async def _send(
        self, process: asyncio.subprocess.Process, message: dict[str, Any], body: bytes | None
    ) -> None:
        assert process.stdin is not None
        try:
            if body is None:
                process.stdin.write(encode_frame(message))
            else:
                process.stdin.write(encode_frame(message | {"body_bytes": len(body)}) + body)
            await process.stdin.drain()
        except OSError:
            raise ZooError(self._ended()) from None

    async def _wait(self, answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
        try:
            return await asyncio.wait_for(answer, self.max_seconds)
        except TimeoutError:
            await self.stop()
            message = f"took longer than {self.max_seconds:g} seconds and was ended"
            raise ZooError(f"the process that {self.name} {message}") from None

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Pass each answer to the job that waits for it, until the process ends."""
        assert process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await process.stdout.readexactly(LENGTH_BYTES)
                answer = await _load(await process.stdout.readexactly(int.from_bytes(head, "big")))
                self._resolve(answer["id"], answer)
        await process.wait()
        for number in list(self._answers):
            self._resolve(number, {"error": self._ended()})

    def _resolve(self, number: int, answer: dict[str, Any]) -> None:
        waiting = self._answers.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _ended(self) -> str:
        return f"the process that {self.name} ended; try again, it starts with the next request"


async def _load(payload: bytes) -> dict[str, Any]:
    """Parse an answer; a long one in a thread, so that other requests do not wait for it."""
    if len(payload) < _LONG_BYTES:
        loaded: dict[str, Any] = json.loads(payload)
    else:
        loaded = await asyncio.to_thread(json.loads, payload)
    return loaded
