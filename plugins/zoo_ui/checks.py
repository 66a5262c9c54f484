"""Checks of the specs that pages edit: only the newest one of each page is answered."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from zoo_ui.worker_client import WorkerClient

_MAX_PAGES = 32


class Superseded(Exception):
    """Raised for a check whose page has sent a newer one."""


class NewestChecks:
    """Runs the newest check of each page, and cancels the one before it.

    Args:
        worker: the process that checks specs.
    """

    def __init__(self, worker: WorkerClient) -> None:
        self._worker = worker
        self._sequences: dict[str, int] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    async def check(self, page: str, sequence: int, data: Any) -> Any:
        """Return the result of a check.

        Args:
            page: the page that sends it.
            sequence: its number on the page; a larger one supersedes it.

        Raises:
            Superseded: if the page has sent a newer one.
            ZooError: if the check cannot be made.
        """
        if sequence <= self._sequences.get(page, -1):
            raise Superseded
        self._sequences.pop(page, None)  # the page that was used last is the last one
        self._sequences[page] = sequence
        for old in list(self._sequences)[:-_MAX_PAGES]:
            del self._sequences[old]
        if page in self._tasks:
            self._tasks[page].cancel()
        task = self._tasks[page] = asyncio.create_task(self._worker.call("check", data=data))
        try:
            with contextlib.suppress(asyncio.CancelledError):
                return await task
            raise Superseded
        finally:
            if self._tasks.get(page) is task:
                del self._tasks[page]
