"""Lengths that the parts of a Transformer accept."""

from __future__ import annotations

from zoo.plugin import Position
from zoo_fast.generation.lengths import UNLIMITED
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder


def max_positions(target: TransformerDecoder | TransformerEncoder) -> int:
    """Return the number of positions of an encoder or decoder."""
    position: Position | None = target.position
    limit = None if position is None else position.max_positions
    return UNLIMITED if limit is None else limit
