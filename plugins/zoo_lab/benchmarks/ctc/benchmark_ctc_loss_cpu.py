"""Benchmark 'ctc-loss-cpu'."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_lab.benchmarks.ctc.loss_benchmark import LossBenchmark, Size


class CtcLossCpuBenchmark(LossBenchmark):
    """The CTC loss from logits on the CPU, forward and backward, compared with torch.

    Args:
        batch: number of items, B.
        frames: number of frames, T.
        symbols: vocabulary size including the blank, V.
        labels: number of labels of each item, U, at most half of the frames.
    """

    name: ClassVar[str] = "ctc-loss-cpu"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 1.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64), "frames": (100, 1000)}
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "frames": 6, "symbols": 4, "labels": 2}

    def __init__(
        self, *, batch: Size = 16, frames: Size = 400, symbols: Size = 64, labels: Size = 60
    ) -> None:
        super().__init__(batch=batch, frames=frames, symbols=symbols, labels=labels)
