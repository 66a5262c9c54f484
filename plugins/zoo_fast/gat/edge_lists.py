"""Acceleration of the edge lists of graph attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Blueprint, Call
from zoo_fast.gat.tensor_cache import TensorCache
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edge_index import EdgeIndex
from zoo_gat.edges import EdgeList, check_edges
from zoo_gat.gat import Gat
from zoo_gat.graph_attention import GraphAttention


class KeptEdges(Acceleration):
    """Keeps the index of the edges of the last graphs, with the sorted edges."""

    name: ClassVar[str] = "graph-attention-edges"
    serves: ClassVar[type[GraphAttention]] = GraphAttention
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True

    def __init__(self) -> None:
        self.kept: TensorCache[EdgeIndex] = TensorCache()

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device = torch.empty(0).device
        attention = Blueprint.of(EdgeAttention, scorer=Blueprint.of(Gat))
        blueprint = Blueprint.of(GraphAttention, layers=1, hidden=2, attention=attention)
        encoder = blueprint.build(input_dim=4).to(device)
        for listed in ([[[0, 1], [2, 2], [-1, -1]]], [[[-1, -1]], [[1, 0]]]):
            mask = torch.ones(len(listed), 3, dtype=torch.bool, device=device)
            mask[-1, 2] = False
            edges = torch.tensor(listed, device=device)
            yield Call(encoder, (edges, mask), method="build_edges")

    def tensors(self, output: EdgeList) -> list[Tensor]:
        return [output.index.pairs, output.valid]

    def build_edges(self, target: GraphAttention, edges: Tensor, mask: Tensor) -> EdgeList:
        def build() -> EdgeIndex:
            check_edges(edges, mask)
            return EdgeIndex.from_batch(edges, mask.shape[1], self_loops=target.self_loops)

        index = self.kept.get(edges, (mask.shape, target.self_loops), build)
        return EdgeList(index, mask.flatten())
