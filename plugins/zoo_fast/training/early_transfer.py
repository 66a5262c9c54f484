"""Transfer of batches to the device while the step before still runs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

MIN_BYTES = 2**20
"""Smaller tensors are copied by the step, which takes less time than to order two streams."""
_ALIGNMENT = 256


class EarlyTransfer:
    """Copies large pinned tensors to a device on a stream of its own.

    Two buffers take turns: a step reads one of them while the other one is written. If there is no
    memory for them, the step copies its batch.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        self._buffers: list[Tensor] = []
        self._read: list[torch.cuda.Event] = []
        self._turn = 0
        self._is_full = False

    def start(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the batch, whose large tensors are copied before what follows on the current
        stream; `end` has to be called after the last use."""
        large = {name: tensor for name, tensor in batch.items() if _is_large(tensor)}
        if not large or self._is_full:
            return dict(batch)
        stream = self._stream = self._stream or self._create()
        size = sum(_aligned(tensor.nbytes) for tensor in large.values())
        try:
            buffer = self._buffer(1 - self._turn, size, stream)
        except torch.OutOfMemoryError:
            self._is_full = True
            return dict(batch)
        self._turn = 1 - self._turn
        stream.wait_event(self._read[self._turn])
        copies, first = {}, 0
        with torch.cuda.stream(stream):
            for name, tensor in large.items():
                part = buffer[first : first + tensor.nbytes]
                copies[name] = part.view(tensor.dtype).view(tensor.shape)
                copies[name].copy_(tensor, non_blocking=True)
                first += _aligned(tensor.nbytes)
        torch.cuda.current_stream(self._device).wait_stream(stream)
        return {**batch, **copies}

    def end(self) -> None:
        """Mark the end of the use of the last batch on the current stream."""
        if self._read:
            self._read[self._turn].record(torch.cuda.current_stream(self._device))

    def _create(self) -> torch.cuda.Stream:
        """Create the events and empty buffers, and return the stream."""
        self._buffers = [torch.empty(0, dtype=torch.uint8, device=self._device) for _ in range(2)]
        self._read = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def _buffer(self, turn: int, size: int, stream: torch.cuda.Stream) -> Tensor:
        """Return a buffer, a larger one if needed."""
        if len(self._buffers[turn]) < size:
            self._buffers[turn] = torch.empty(size, dtype=torch.uint8, device=self._device)
            # The current stream may still use what was in its place.
            stream.wait_stream(torch.cuda.current_stream(self._device))
        return self._buffers[turn]


def _is_large(tensor: Tensor) -> bool:
    return tensor.nbytes >= MIN_BYTES and tensor.is_contiguous() and tensor.is_pinned()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
