"""Benchmark 'additive-attention-cpu'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from zoo_lab.benchmarks.bahdanau.additive_benchmark import AdditiveBenchmark, Size, textbook


class AdditiveAttentionCpu(AdditiveBenchmark):
    """Additive attention on the CPU, forward and backward, compared with eager PyTorch.

    In float32, without projections and mask.

    Args:
        batch: number of sequences, B.
        length: number of queries and of keys, T = S.
        dim: width of queries, keys and values, D.
    """

    name: ClassVar[str] = "additive-attention-cpu"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 5.0
    memory_target: ClassVar[float | None] = 1 / 50
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"length": (64, 128, 256)}
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "length": 3, "dim": 4}

    def __init__(self, *, batch: Size = 2, length: Size = 256, dim: Size = 512) -> None:
        super().__init__(batch=batch, length=length, dim=dim)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"eager": lambda: lambda: self.measured(textbook)}
