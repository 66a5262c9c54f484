"""The edges of a batch of graphs as one list.

Notation: B batch, N nodes, E edges; M edges of all graphs together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from zoo_gat.edge_order import EdgeOrder
from zoo_gat.sorted_pairs import SortedPairs


@dataclass(frozen=True)
class EdgeIndex:
    """The edges of a batch of graphs as one list, with nodes indexed over the whole batch.

    Shapes:
        target, source [M] from 0 to B * N - 1; listed [M], False for padding and for self-loops
        that are listed although each node has one; nodes = B * N; graphs = (B, M / B).
    """

    target: Tensor
    source: Tensor
    listed: Tensor
    nodes: int
    graphs: tuple[int, int]

    @classmethod
    def from_batch(cls, edges: Tensor, N: int, *, self_loops: bool) -> EdgeIndex:
        """Build the list from edges [B, E, 2].

        With self_loops, each node has exactly one self-loop: listed self-loops are excluded and one
        per node is appended, so that M = B * (E + N).
        """
        B, device = edges.shape[0], edges.device
        edges = edges.long() if N else edges[:, :0].long()
        listed = (edges >= 0).all(dim=-1)
        if self_loops:
            listed = listed & (edges[..., 0] != edges[..., 1])
            loops = torch.arange(N, device=device)[None, :, None].expand(B, N, 2)
            edges = torch.cat([edges, loops], dim=1)
            listed = torch.cat([listed, listed.new_ones(B, N)], dim=1)
        first = torch.arange(B, device=device)[:, None, None] * N
        # Without validation, an index >= N must not refer to a node of the next graph: it is an
        # error of the lookup below.
        endpoints = edges.clamp(min=0).where(edges < N, B * N) + first
        source, target = endpoints.flatten(0, 1).T.contiguous().unbind()
        exists = listed.new_ones(B * N)
        listed = listed.flatten() & exists[source] & exists[target]
        return cls(target, source, listed, B * N, (B, edges.shape[1]))

    @cached_property
    def by_target(self) -> EdgeOrder:
        """The edges sorted by target, computed at the first use."""
        return EdgeOrder.sort(self.target, self.source, self.listed, self.nodes)

    @cached_property
    def by_source(self) -> EdgeOrder:
        """The edges sorted by source, computed at the first use."""
        return EdgeOrder.sort(self.source, self.target, self.listed, self.nodes)

    @cached_property
    def position_by_source(self) -> Tensor:
        """The position of each edge, sorted by target, among the edges sorted by source: [M]."""
        order = self.by_source.order.long()
        positions = torch.empty_like(self.by_source.order)
        positions[order] = torch.arange(len(order), device=order.device, dtype=positions.dtype)
        return positions[self.by_target.order.long()]

    @cached_property
    def sorted_pairs(self) -> SortedPairs:
        """The listed edges in the order of the targets, on the CPU."""
        edges = self.by_target
        degree, end = edges.first_edge.diff(), int(edges.first_edge[-1])
        target = torch.arange(self.nodes).repeat_interleave(degree, output_size=end)
        return SortedPairs.build(target, edges.neighbours[:end].long(), self.nodes)
