"""Interface of encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from zoo.interfaces.component import Component
from zoo.interfaces.data import Memory


class Encoder(Component, nn.Module, ABC):
    """Encodes a sequence of vectors, or the nodes of a graph, as a memory.

    From the parent: input_dim.

    Laws:
        padding invariance: encoding a padded batch equals encoding each item alone. If
        `accepts_edges`: permuting the nodes permutes the states, and the state of a node depends
        on the sources of its incoming edges only.

    Attributes:
        output_dim: width of memory.states.
        summary_dim: width of memory.summary.
        carry: (layers, width) of each tensor in memory.carry.
    """

    kind: ClassVar[str] = "encoder"
    widths: ClassVar[tuple[str, ...]] = ("output_dim", "summary_dim")

    accepts_edges: ClassVar[bool] = False
    """Whether forward takes edges [B, E, 2]: pairs (source, target), padded with -1."""
    input_parts: ClassVar[tuple[str, ...]] = ()
    """Names of the modules that precede the first layer; they may be None. Learning rates by depth
    treat them as embeddings."""

    output_dim: int
    summary_dim: int
    carry: Mapping[str, tuple[int, int]]

    @abstractmethod
    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        """Encode inputs [B, S, D]; mask [B, S] is True at valid positions.

        Valid positions come first, unless the encoder documents another layout.
        """
