"""Benchmark 'additive-attention-cpu-forward'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from zoo_lab.benchmarks.bahdanau.additive_benchmark import AdditiveBenchmark, Attend, Size, textbook


class AdditiveAttentionCpuForward(AdditiveBenchmark):
    """Additive attention on the CPU, forward only, compared with PyTorch, eager and compiled.

    In float32, without projections and mask.

    Args:
        batch: number of sequences, B.
        length: number of queries and of keys, T = S.
        dim: width of queries, keys and values, D.
    """

    name: ClassVar[str] = "additive-attention-cpu-forward"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 6.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"length": (32, 64, 128)}
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "length": 3, "dim": 4}

    def __init__(self, *, batch: Size = 8, length: Size = 64, dim: Size = 512) -> None:
        super().__init__(batch=batch, length=length, dim=dim)

    def measured(self, function: Attend) -> Any:
        query, keys, values, v = self.inputs
        with torch.no_grad():
            return function(query, keys, values, v)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def compiled() -> Callable[[], Any]:
            function = torch.compile(textbook)
            return lambda: self.measured(function)

        return {"torch.compile": compiled, "eager": lambda: lambda: self.measured(textbook)}
