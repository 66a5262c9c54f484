"""Detection of operations that wait for the device, which a CUDA graph cannot contain."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import TextIO

import torch

_WARNING = "called a synchronizing CUDA operation"


@contextlib.contextmanager
def find_synchronisation() -> Iterator[list[str]]:
    """Yield a list that is filled with the operations in the block that wait for the device.

    Those of other threads are ignored; warnings of the backward pass are raised in this thread.
    """
    found: list[str] = []
    others: list[warnings.WarningMessage] = []
    mode, own = torch.cuda.get_sync_debug_mode(), threading.get_ident()

    def record(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if _WARNING not in str(message):
            others.append(warnings.WarningMessage(message, category, filename, lineno))
        elif threading.get_ident() == own:
            found.append(f"{filename}:{lineno} waits for the device")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = record
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(mode)
    for warning in others:
        if "prototype feature" not in str(warning.message):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
