"""The edges of a batch of graphs as one list.

Notation: B batch, N nodes, E edges; M edges of all graphs together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """The edges of a batch of graphs as one list, with nodes indexed over the whole batch.

    Shapes:
        pairs [2, M], source and target from 0 to B * N - 1, with 32 bits if they fit; listed [M],
        False for padding and for self-loops that are listed although each node has one;
        nodes = B * N; graphs = (B, M / B).
    """

    pairs: Tensor
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
        source, target = pairs = endpoints.flatten(0, 1).T
        exists = listed.new_ones(B * N)
        listed = listed.flatten() & exists[source] & exists[target]
        dtype = torch.int32 if max(B * N, len(source)) < 2**31 else torch.int64
        pairs = pairs.to(dtype, memory_format=torch.contiguous_format)
        return cls(pairs, listed, B * N, (B, edges.shape[1]))

    @property
    def source(self) -> Tensor:
        """The source of each edge [M], with 64 bits."""
        return self.pairs[0].long()

    @property
    def target(self) -> Tensor:
        """The target of each edge [M], with 64 bits."""
        return self.pairs[1].long()
