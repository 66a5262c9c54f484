"""Benchmark 'ctc-loss'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo_lab.benchmarks.ctc.loss_benchmark import LossBenchmark, Size


class CtcLossBenchmark(LossBenchmark):
    """The CTC loss from logits on a GPU, forward and backward, compared with torch.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        labels: number of labels of each item, U, at most half of the frames.
    """

    name: ClassVar[str] = "ctc-loss"
    target: ClassVar[float | None] = 2.0
    memory_target: ClassVar[float | None] = 0.5
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "frames": (256, 1024, 4096, 16384),
        "batch": (1, 8, 64, 512),
    }
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "frames": 6, "symbols": 4, "labels": 2}

    def __init__(
        self, *, batch: Size = 64, frames: Size = 1000, symbols: Size = 64, labels: Size = 150
    ) -> None:
        super().__init__(batch=batch, frames=frames, symbols=symbols, labels=labels)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        peers = dict(super().peers())
        if self.logits.device.type != "cuda":
            return peers

        def compiled(mode: str | None) -> Callable[[], Any]:
            loss = torch.compile(self.torch_loss, mode=mode)
            return lambda: self.measured(lambda: loss(self.logits))

        def cudnn() -> Callable[[], Any]:
            return lambda: self.measured(lambda: self.torch_loss(self.logits, dtype=torch.int32))

        return {**peers, "torch, cuDNN": cudnn, "torch.compile": lambda: compiled(None)}
