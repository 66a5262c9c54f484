"""Encoder: a sequence of vectors to a memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Memory


class Encoder(Component, nn.Module, ABC):
    """Reads a whole sequence, or the nodes of a graph, and leaves a memory of it.

    Given by the parent: input_dim.

    Laws:
        padding invariance: a padded batch equals its items alone. Of a relational encoder also
        with edges: permuting the nodes permutes the states, and a node hears of those alone from
        whom edges lead to it.

    Attributes:
        output_dim: width of memory.states.
        summary_dim: width of memory.summary.
        carry: for each tensor of memory.carry, its (layers, width).
    """

    kind: ClassVar[str] = "encoder"
    widths: ClassVar[tuple[str, ...]] = ("output_dim", "summary_dim")

    accepts_edges: ClassVar[bool] = False
    """Reads graphs too: forward takes edges [B, E, 2], each (source, target), padded with -1."""

    output_dim: int
    summary_dim: int
    carry: Mapping[str, tuple[int, int]]

    @abstractmethod
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        """inputs [B, S, D], mask [B, S] with the real positions first -> memory."""
