"""Tables of position encodings, for decoding steps in kernels."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from zoo.plugin import Position
from zoo_fast.by_class import ByClass
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.sinusoidal import Sinusoidal


class Angles(NamedTuple):
    """Cosines and sines [N, d / 2] of the angles of a rotary position."""

    cos: Tensor
    sin: Tensor


@ByClass
def added_vectors(position: Position, length: int, like: Tensor) -> Tensor | None:
    """Return the vectors [length, D] that `add` adds to states, in the dtype of ``like``."""


@ByClass
def rotation(position: Position, length: int, like: Tensor) -> Angles | None:
    """Return the angles of `rotate` for the first positions, in the dtype of ``like``."""


@added_vectors.register(Learned)
def _learned(position: Learned, length: int, like: Tensor) -> Tensor:
    return position.table.weight[:length].to(like.dtype)


@added_vectors.register(Sinusoidal)
def _sinusoidal(position: Sinusoidal, length: int, like: Tensor) -> Tensor:
    (waves,) = position.table.rows(length, position.start, like)
    return waves


@rotation.register(Rotary)
def _rotary(position: Rotary, length: int, like: Tensor) -> Angles:
    return Angles(*position.table.rows(length, 0, like))


def position_tables(position: Position | None, length: int, like: Tensor) -> dict[str, Tensor]:
    """Return the vectors "added", and "cos" and "sin" of the angles, of texts of a length."""
    if position is None:
        return {}
    position = position.for_length(length)
    added = added_vectors(position, length, like)
    angles = rotation(position, length, like)
    tables = {} if added is None else {"added": added}
    return tables if angles is None else {**tables, "cos": angles.cos, "sin": angles.sin}


def is_interleaved(position: Position | None) -> bool:
    """Whether angles rotate dimensions (2i, 2i + 1), not (i, i + d/2)."""
    return isinstance(position, Rotary) and position.layout == "interleaved"


def why_not_tables(position: Position | None) -> str | None:
    """Return why there are no tables of a position, or None if there are."""
    if position is None:
        return None
    if position.has_bias or position.has_score_bias:
        return f"position '{position.name}' adds a bias to the scores"
    if isinstance(position, Rotary) and position.dim < position.head_dim:
        return f"position '{position.name}' rotates a part of each head only"
    if type(position).rotate is not Position.rotate and not rotation.knows(position):
        return f"position '{position.name}' has no table of angles"
    if type(position).add is not Position.add and not added_vectors.knows(position):
        return f"position '{position.name}' has no table of vectors"
    return None
