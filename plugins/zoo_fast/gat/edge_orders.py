"""Sorted edges of an edge index, computed once.

Notation: M edges of all graphs together.
"""

from __future__ import annotations

import weakref
from functools import cached_property

import torch
from torch import Tensor

from zoo_fast.gat.edge_order import EdgeOrder
from zoo_fast.gat.sorted_pairs import SortedPairs
from zoo_gat.edge_index import EdgeIndex


class EdgeOrders:
    """The edges of an index sorted by target and by source, each computed at the first use."""

    def __init__(self, index: EdgeIndex) -> None:
        # The index itself is not kept, so that it can be freed.
        self.pairs, self.listed, self.nodes = index.pairs, index.listed, index.nodes

    @property
    def by_target(self) -> EdgeOrder:
        """The edges sorted by target."""
        return self._by_target[0]

    @property
    def ids_by_target(self) -> Tensor:
        """The index of each edge, sorted by target: [M]."""
        return self._by_target[1]

    @property
    def by_source(self) -> EdgeOrder:
        """The edges sorted by source."""
        return self._by_source[0]

    @property
    def position_by_source(self) -> Tensor:
        """The position of each edge, sorted by target, among the edges sorted by source: [M]."""
        return self._by_source[1]

    @property
    def ids_by_source(self) -> Tensor:
        """The index of each edge, sorted by source: [M]."""
        ids = torch.empty_like(self.ids_by_target)
        ids[self.position_by_source.long()] = self.ids_by_target
        return ids

    @cached_property
    def _by_target(self) -> tuple[EdgeOrder, Tensor]:
        source, target = self.pairs
        return EdgeOrder.sort(target, source, self.listed, self.nodes)

    @cached_property
    def _by_source(self) -> tuple[EdgeOrder, Tensor]:
        """The order and the positions; the indices of the edges can be computed from these."""
        source, target = self.pairs
        order, ids = EdgeOrder.sort(source, target, self.listed, self.nodes)
        positions = torch.empty_like(ids)
        positions[ids.long()] = torch.arange(len(ids), device=ids.device, dtype=ids.dtype)
        return order, positions[self.ids_by_target.long()]

    @cached_property
    def sorted_pairs(self) -> SortedPairs:
        """The listed edges in the order of the targets, on the CPU."""
        edges = self.by_target
        degree, end = edges.first_edge.diff(), int(edges.first_edge[-1])
        nodes = torch.arange(self.nodes, device=degree.device)
        target = nodes.repeat_interleave(degree, output_size=end)
        return SortedPairs.build(target, edges.neighbours[:end].long(), self.nodes)


_KEPT: weakref.WeakKeyDictionary[EdgeIndex, EdgeOrders] = weakref.WeakKeyDictionary()


def edge_orders(index: EdgeIndex) -> EdgeOrders:
    """Return the sorted edges of an index, the same ones for each call with it."""
    orders = _KEPT.get(index)
    if orders is None:
        orders = _KEPT[index] = EdgeOrders(index)
    return orders
