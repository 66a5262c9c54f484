"""Benchmark 'additive-attention'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_lab.benchmarks.bahdanau.additive_benchmark import AdditiveBenchmark, Size, attend, textbook

EAGER_LIMIT = 2**33
"""Number of pairs and hidden units from which eager PyTorch is not measured, for its memory."""


class AdditiveAttentionBenchmark(AdditiveBenchmark):
    """Additive attention, forward and backward, compared with PyTorch, eager and compiled.

    In bfloat16 on a GPU, without projections and mask.

    Args:
        recorded: on a GPU, capture both passes as a CUDA graph, as torch.compile does in its mode
            reduce-overhead.
        batch: number of sequences, B.
        length: number of queries and of keys, T = S.
        dim: width of queries, keys and values, D.
    """

    name: ClassVar[str] = "additive-attention"
    target: ClassVar[float | None] = 5.0
    memory_target: ClassVar[float | None] = 1.2
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "length": (256, 1024, *({"length": n, "batch": 1} for n in (1024, 4096, 16384))),
        "batch": (1, 8, 64, 512),
        "recorded": (True, False),
    }
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "length": 3, "dim": 4}

    def __init__(
        self, *, recorded: bool = True, batch: Size = 32, length: Size = 256, dim: Size = 512
    ) -> None:
        super().__init__(batch=batch, length=length, dim=dim)
        self.recorded = recorded

    def prepare(self, device: torch.device) -> None:
        super().prepare(device)
        self.graph = GraphedFunction(lambda inputs: self.measured(attend))

    def run(self) -> Any:
        is_captured = self.recorded and self.grad.is_cuda
        return self.graph({}) if is_captured else self.measured(attend)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def compiled(mode: str | None) -> Callable[[], Any]:
            function = torch.compile(textbook, mode=mode)

            def attend_compiled(*inputs: Tensor) -> Tensor:
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
                return function(*inputs)

            return lambda: self.measured(attend_compiled)

        peers: dict[str, Callable[[], Callable[[], Any]]] = {
            "torch.compile": lambda: compiled(None),
            "torch.compile, reduce-overhead": lambda: compiled("reduce-overhead"),
        }
        if self.batch * self.length**2 * self.dim < EAGER_LIMIT:
            peers["eager"] = lambda: lambda: self.measured(textbook)
        return peers
