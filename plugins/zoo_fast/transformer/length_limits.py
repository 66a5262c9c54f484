"""Lengths that the parts of a Transformer accept."""

from __future__ import annotations

from zoo.interfaces.module_parts import each_part
from zoo.plugin import Position
from zoo_fast.generation.lengths import UNLIMITED
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder


def max_positions(target: TransformerDecoder | TransformerEncoder) -> int:
    """Return the smallest number of positions of the parts of an encoder or decoder."""
    limits = [part.max_positions for part in each_part(target) if isinstance(part, Position)]
    return min((limit for limit in limits if limit is not None), default=UNLIMITED)


def max_padded_source(target: TransformerEncoder) -> int:
    """Return the length up to which padding does not change how positions are rotated."""
    parts = [part for part in each_part(target) if isinstance(part, Position)]
    return min([max_positions(target), *(n for part in parts for n in part.switch_lengths)])
