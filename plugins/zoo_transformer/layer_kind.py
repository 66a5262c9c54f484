"""Kinds of layers of a Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Position
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_scale import LayerScale


class LayerKind:
    """What differs between the layers of a stack: self-attention and feed-forward network.

    Args:
        window: a position attends only to positions at distances below it (Beltagy et al. 2020,
            section 3.1); to all if not set.
        position: position of these layers in attention, instead of that of the stack: rotary, or a
            bias of the scores, whose parameters each layer has (Bao et al. 2022, section 2.3).
        no_position: whether these layers use no position (Kazemnejad et al. 2023).
        feed_forward: feed-forward network of these layers, instead of that of the stack.
    """

    def __init__(
        self,
        *,
        window: Annotated[int, Field(ge=1)] | None = None,
        position: Blueprint[Position] | None = None,
        no_position: bool = False,
        feed_forward: Blueprint[FeedForward] | None = None,
    ) -> None:
        if no_position and position is not None:
            raise ZooError("position and no_position are both set")
        self.window, self.position, self.no_position = window, position, no_position
        self.feed_forward = feed_forward
        self._built: Position | None = None

    @property
    def has_own_position(self) -> bool:
        """Whether the position of the stack is not used."""
        return self.no_position or self.position is not None

    def build_position(self, attention: Attention, *, causal: bool) -> Position | None:
        """Return the position of a layer of this kind; all share it, unless it is a bias."""
        if self.position is None or self._built is not None:
            return self._built
        built: Position = self.position.build(
            dim=attention.query_dim,
            heads=attention.heads,
            head_dim=attention.head_dim,
            causal=causal,
        )
        if built.has_bias and not built.is_rotary and type(built).add is Position.add:
            return built
        require_rotary(built)
        attention.set_position(built)
        self._built = built
        return built


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """Further parameters of a stack of layers; the encoder and the decoder document them."""

    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    pattern: Sequence[Blueprint[LayerKind]] = ()
    sublayers: Literal["sequential", "parallel", "parallel-shared"] = "sequential"
    layer_scale: Annotated[float, Field(gt=0)] | None = None

    def layer_kinds(self, layers: int) -> list[LayerKind]:
        """Return the kind of each layer: the pattern, repeated."""
        kinds = [kind.build() for kind in self.pattern] or [LayerKind()]
        return [kinds[index % len(kinds)] for index in range(layers)]

    def build_scale(self, dim: int) -> LayerScale | None:
        """Build the layer scale of a sublayer, if there is one."""
        return None if self.layer_scale is None else LayerScale(dim, self.layer_scale)


DEFAULT_OPTIONS = StackOptions()


def require_rotary(position: Position | None) -> None:
    """Raise ZooError if layers cannot differ in this position."""
    if position is None:
        return
    if position.has_bias or position.has_score_bias or not position.is_rotary:
        raise ZooError(
            f"layers with different positions, or without, require rotary positions, not "
            f"'{position.name}'"
        )
