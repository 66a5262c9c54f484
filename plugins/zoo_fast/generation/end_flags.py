"""Flags of the decoding loop that the host reads."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

from zoo.generation.loop import require_valid


class EndFlags:
    """Reads whether the search has ended or failed.

    On a GPU the flags are copied asynchronously. With ``lag`` those of the previous call are read,
    so that the device has further steps to run while the host waits.
    """

    def __init__(self, *, lag: bool) -> None:
        self._lag = lag
        self._copies: deque[tuple[Tensor, torch.cuda.Event, int]] = deque()

    def read(self, invalid: Tensor, done: Tensor, step: int, *, wait: bool) -> list[bool] | None:
        """Return which items are done, None if not known yet.

        Raises ZooError if a logit was NaN or inf.

        Args:
            wait: whether to read the flags of this call.
        """
        if invalid.device.type != "cuda":
            require_valid(bool(invalid), step)
            return _to_list(done)
        flags = torch.cat([invalid[None], done])
        copy = torch.empty(flags.shape, dtype=torch.bool, device="cpu", pin_memory=True)
        copy.copy_(flags, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        self._copies.append((copy, event, step))
        if self._lag and not wait and len(self._copies) < 2:
            return None
        copy, event, step = self._copies.pop() if wait else self._copies.popleft()
        event.synchronize()
        failed, *ended = _to_list(copy)
        require_valid(failed, step)
        return ended


def _to_list(flags: Tensor) -> list[bool]:
    values: list[bool] = flags.tolist()
    return values
