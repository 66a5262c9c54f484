"""The memory and the streams of captures of CUDA graphs."""

from __future__ import annotations

from typing import Any

import torch


class GraphPool:
    """Memory and streams of captures.

    Functions can share one if no two of them run at a time and the outputs of one are copied before
    the next one runs: what a graph needs only while it runs is then memory of all of them.

    Attributes:
        handle: names the memory.
        first: a graph that is kept, since a handle cannot be used when all its graphs are deleted.
    """

    def __init__(self) -> None:
        self.handle: Any = None
        self.first: torch.cuda.CUDAGraph | None = None
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def stream(self) -> torch.cuda.Stream:
        """Return the stream of the current device."""
        device = torch.device("cuda", torch.cuda.current_device())
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        return self._streams[device]
