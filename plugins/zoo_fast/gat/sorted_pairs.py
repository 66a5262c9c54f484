"""Edges sorted by target, with sums over the edges of each node, for the CPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class SortedPairs:
    """Target and source of each edge, in the order of the targets.

    Shapes:
        target, source [M]; by_source [M], the edges in the order of the sources; first_by_target
        and first_by_source [nodes], the positions of the first edges of each node.
    """

    target: Tensor
    source: Tensor
    by_source: Tensor
    first_by_target: Tensor
    first_by_source: Tensor

    @classmethod
    def build(cls, target: Tensor, source: Tensor, nodes: int) -> SortedPairs:
        """Build the pairs from edges that are sorted by target."""
        sources, by_source = source.sort(stable=True)
        index = torch.arange(nodes, device=target.device)
        first_by_target, first_by_source = (
            torch.searchsorted(sorted_nodes, index) for sorted_nodes in (target, sources)
        )
        return cls(target, source, by_source, first_by_target, first_by_source)

    def select_nodes(self, is_valid: Tensor) -> SortedPairs:
        """Return the edges between valid nodes; is_valid [nodes]."""
        if is_valid.all():
            return self
        kept = is_valid[self.target] & is_valid[self.source]
        return SortedPairs.build(self.target[kept], self.source[kept], len(is_valid))

    def sum_by_target(self, values: Tensor) -> Tensor:
        """Sum values [M, *] over the edges of each target: [nodes, *]."""
        if torch.is_grad_enabled():  # `embedding_bag` has no second derivative
            zeros = values.new_zeros(len(self.first_by_target), *values.shape[1:])
            return zeros.index_add(0, self.target, values)
        return _sum(values, torch.arange(len(values), device=values.device), self.first_by_target)

    def sum_by_source(self, values: Tensor) -> Tensor:
        """Sum values [M, *] over the edges of each source, without a gradient: [nodes, *]."""
        return _sum(values, self.by_source, self.first_by_source)


def _sum(values: Tensor, order: Tensor, first: Tensor) -> Tensor:
    sums = F.embedding_bag(order, values.flatten(1), first, mode="sum")
    return sums.view(len(first), *values.shape[1:])
