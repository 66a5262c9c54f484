"""Edges sorted by one of their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

CHUNK = 1024
"""Largest number of edges of a chunk."""


@dataclass(frozen=True)
class EdgeOrder:
    """Edges sorted by target or by source, without those that are not listed.

    Shapes:
        neighbours [M], the other node of each edge; first_edge [nodes + 1], the position of the
        first edge of each node. Edges that are not listed are last.
    """

    neighbours: Tensor
    first_edge: Tensor

    @classmethod
    def sort(
        cls, node: Tensor, neighbours: Tensor, listed: Tensor, nodes: int
    ) -> tuple[EdgeOrder, Tensor]:
        """Sort edges by the given node of each edge [M].

        Returns also the index of each edge before sorting [M], of the dtype of the nodes.
        """
        values, ids = node.where(listed, nodes).sort(stable=True)
        index = torch.arange(nodes + 1, device=node.device, dtype=node.dtype)
        small = node.dtype == torch.int32
        first_edge = torch.searchsorted(values, index, out_int32=small)
        return cls(neighbours[ids], first_edge), ids.to(node.dtype)

    @cached_property
    def chunks(self) -> EdgeChunks:
        """The edges of each node in chunks of limited size, computed at the first use."""
        return EdgeChunks.split(self.first_edge, len(self.neighbours))


@dataclass(frozen=True)
class EdgeChunks:
    """Ranges of at most CHUNK edges of one node, so that nodes with many edges run in parallel.

    The number of chunks is an upper bound that depends on the shapes only, so that a GPU is not
    synchronised; the node of unused ones is the number of nodes. A node with several chunks has
    consecutive positions for partial sums.

    Shapes:
        chunks [C, 4]: node, first edge, end, position of the partial sums or -1; partial_ranges
        [P, 2]: node and end of its positions, 0 if the position is not the first of the node.
    """

    chunks: Tensor
    partial_ranges: Tensor

    @classmethod
    def split(cls, first_edge: Tensor, num_edges: int) -> EdgeChunks:
        """Split the edges of each node; the chunks of all nodes are in the order of the edges."""
        nodes, dtype = len(first_edge) - 1, first_edge.dtype
        degree = first_edge.diff()
        count = ((degree + CHUNK - 1) // CHUNK).clamp(min=1)
        last = count.cumsum(0, dtype=dtype)  # position after the last chunk of each node
        index = torch.arange(nodes + num_edges // CHUNK, device=last.device, dtype=dtype)
        node = torch.searchsorted(last, index, right=True)
        owner = node.clamp(max=nodes - 1)
        rank = index - (last - count)[owner]
        start = first_edge[owner] + rank * CHUNK
        end = torch.minimum(start + CHUNK, first_edge[owner + 1])
        positions = count.where(count > 1, 0)
        last_position = positions.cumsum(0, dtype=dtype)
        slot = (last_position - positions)[owner] + rank
        slot = slot.where(count[owner] > 1, -1)
        chunks = torch.stack([node.to(dtype), start, end, slot], dim=1)
        index = torch.arange(2 * (num_edges // CHUNK), device=last.device, dtype=dtype)
        node = torch.searchsorted(last_position, index, right=True)
        owner = node.clamp(max=nodes - 1)
        is_first = (node < nodes) & (index == (last_position - positions)[owner])
        end = last_position[owner].where(is_first, 0)
        return cls(chunks, torch.stack([owner.to(dtype), end], dim=1))
