"""Benchmark 'gat-layer'."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import nn

from zoo.plugin import Blueprint
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat
from zoo_lab.benchmarks.gat.layer_benchmark import LayerBenchmark, Size


class GatLayer(LayerBenchmark):
    """A GAT layer on a graph of the size of ogbn-arxiv, against GATConv of torch-geometric.

    Forward and backward pass in float32, with self-loops. The bytes that must be moved take about a
    quarter of the time of the compiled peer, so that 8 times its speed cannot be reached.

    Args:
        nodes: number of nodes.
        edges: number of edges, without self-loops.
        features: width of the node features.
        heads: number of heads.
        head_dim: width of a head.
        recorded: on a GPU, capture both passes as a CUDA graph.
    """

    name: ClassVar[str] = "gat-layer"
    target: ClassVar[float | None] = 8.0
    peer_targets: ClassVar[Mapping[str, float]] = {"torch-geometric": 8.0}
    memory_target: ClassVar[float | None] = 1 / 8
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "edges": (10**6, 10**7, 10**8),
        "recorded": (True, False),
    }
    packages: ClassVar[Sequence[str]] = ("torch-geometric",)
    test_params: ClassVar[Mapping[str, Any]] = {
        "nodes": 7,
        "edges": 20,
        "features": 5,
        "heads": 2,
        "head_dim": 3,
    }

    def __init__(
        self,
        *,
        nodes: Size = 169_343,
        edges: Size = 2_332_486,
        features: Size = 128,
        heads: Size = 8,
        head_dim: Size = 32,
        recorded: bool = True,
    ) -> None:
        super().__init__(
            nodes=nodes,
            edges=edges,
            features=features,
            heads=heads,
            head_dim=head_dim,
            recorded=recorded,
        )

    def build_layer(self) -> EdgeAttention:
        return EdgeAttention(
            input_dim=self.features,
            head_dim=self.head_dim,
            heads=self.heads,
            merge="concat",
            scorer=Blueprint.of(Gat),
        )

    def build_peer(self, *, add_self_loops: bool) -> nn.Module:
        from torch_geometric.nn import GATConv

        layer: nn.Module = GATConv(
            self.features, self.head_dim, heads=self.heads, add_self_loops=add_self_loops
        )
        return layer
