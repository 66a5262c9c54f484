"""Edges sorted by one of their nodes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class EdgeOrder:
    """The order of edges sorted by target or by source.

    Shapes:
        order [M], the index of each edge before sorting; first_edge [nodes + 1], the position of
        the first edge of each node.
    """

    order: Tensor
    first_edge: Tensor

    @classmethod
    def sort(cls, node: Tensor, nodes: int) -> EdgeOrder:
        """Sort edges by the given node of each edge [M]."""
        values, order = node.sort(stable=True)
        index = torch.arange(nodes + 1, device=node.device)
        return cls(order, torch.searchsorted(values, index))


class OrderCache:
    """Keeps the orders of one tensor of edges, so that training on one graph sorts it once.

    The tensor is identified by itself and its version, which changes with every operation in place.
    Copies and pickles of a cache are empty.
    """

    def __init__(self) -> None:
        self._edges: weakref.ref[Tensor] | None = None
        self._key: tuple[object, ...] = ()
        self._orders: dict[str, EdgeOrder] = {}

    def orders(self, edges: Tensor, key: tuple[object, ...]) -> dict[str, EdgeOrder]:
        """Return the orders of the edges by name, empty if they or the key are new."""
        if torch.compiler.is_compiling() or edges.is_inference():
            return {}
        key = (*key, edges._version)
        if self._edges is None or self._edges() is not edges or self._key != key:
            self._edges, self._key, self._orders = weakref.ref(edges), key, {}
        return self._orders

    def __deepcopy__(self, memo: object) -> OrderCache:
        return OrderCache()

    def __reduce__(self) -> tuple[type[OrderCache], tuple[()]]:
        return OrderCache, ()
