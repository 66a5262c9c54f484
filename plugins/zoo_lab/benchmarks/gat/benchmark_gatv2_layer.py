"""Benchmark 'gatv2-layer'."""

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from zoo.plugin import Blueprint
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gatv2 import GatV2
from zoo_lab.benchmarks.gat.benchmark_gat_layer import GatLayer


class GatV2Layer(GatLayer):
    """A GATv2 layer on a graph of the size of ogbn-arxiv, against GATv2Conv of torch-geometric.

    Forward and backward pass in float32, with self-loops and two projections with bias.

    Args:
        nodes: number of nodes.
        edges: number of edges, without self-loops.
        features: width of the node features.
        heads: number of heads.
        head_dim: width of a head.
        recorded: on a GPU, capture both passes as a CUDA graph.
    """

    name: ClassVar[str] = "gatv2-layer"
    target: ClassVar[float | None] = None
    peer_targets: ClassVar[Mapping[str, float]] = {}
    memory_target: ClassVar[float | None] = None

    def build_layer(self) -> EdgeAttention:
        return EdgeAttention(
            input_dim=self.features,
            head_dim=self.head_dim,
            heads=self.heads,
            merge="concat",
            scorer=Blueprint.of(GatV2),
            project="kv",
            bias=True,
        )

    def build_peer(self, *, add_self_loops: bool) -> nn.Module:
        from torch_geometric.nn import GATv2Conv

        layer: nn.Module = GATv2Conv(
            self.features, self.head_dim, heads=self.heads, add_self_loops=add_self_loops
        )
        return layer
