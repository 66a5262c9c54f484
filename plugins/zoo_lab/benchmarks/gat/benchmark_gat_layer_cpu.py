"""Benchmark 'gat-layer-cpu'."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo_lab.benchmarks.gat.benchmark_gat_layer import GatLayer
from zoo_lab.benchmarks.gat.layer_benchmark import Size


class GatLayerCpu(GatLayer):
    """A GAT layer on a graph of the size of Cora with one thread, against torch-geometric.

    Forward and backward pass in float32, with self-loops. As in Cora, 1.27 % of the features are
    not zero; each row is divided by its sum. All layers get the same dense tensor of features.

    Args:
        nodes: number of nodes.
        edges: number of edges, without self-loops.
        features: width of the node features.
        heads: number of heads.
        head_dim: width of a head.
        density: fraction of the features that are not zero.
    """

    name: ClassVar[str] = "gat-layer-cpu"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 2.0
    peer_targets: ClassVar[Mapping[str, float]] = {}
    memory_target: ClassVar[float | None] = None
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"density": (0.0127, 0.1, 1.0)}

    def __init__(
        self,
        *,
        nodes: Size = 2708,
        edges: Size = 10_556,
        features: Size = 1433,
        heads: Size = 8,
        head_dim: Size = 8,
        density: Annotated[float, Field(gt=0, le=1)] = 0.0127,
    ) -> None:
        super().__init__(
            nodes=nodes, edges=edges, features=features, heads=heads, head_dim=head_dim
        )
        self.density = density

    def sample_features(self) -> Tensor:
        words = (torch.rand(self.nodes, self.features) < self.density).float()
        return words / words.sum(dim=1, keepdim=True).clamp(min=1)

    def run(self) -> Any:
        with _one_thread():
            return super().run()

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def with_one_thread(prepare: Callable[[], Callable[[], Any]]) -> Callable[[], Any]:
            run = prepare()

            def measured() -> Any:
                with _one_thread():
                    return run()

            return measured

        prepare = super().peers()["torch-geometric"]
        return {"torch-geometric": lambda: with_one_thread(prepare)}


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
