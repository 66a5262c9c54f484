"""The keys of the section ``train`` that say where a training starts and what it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from zoo.errors import InvalidParameter
from zoo.registry.blueprint import Blueprint

Patterns = Annotated[Sequence[str], Field(min_length=1)]
"""Patterns for paths of parameters; see `zoo.interfaces.path_pattern`."""


class Start:
    """The weights that a training starts from.

    Args:
        weights: a model with weights: a file, the folder of a run or of a checkpoint, a shipped
            name, or ``org/name[@revision]`` on the Hub.
        parts: which parts are taken, by path in the model: those of the model with weights by
            those of this model. Default: each part of the model, if it has the same tensors.
        sha256: the expected hash of the model, as ``zoo info`` prints it, or of its file.
    """

    shorthand: ClassVar[str] = "weights"
    """The parameter that a text instead of a mapping sets."""

    def __init__(
        self,
        *,
        weights: Annotated[str, Field(min_length=1)],
        parts: Annotated[dict[str, str], Field(min_length=1)] | None = None,
        sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None,
    ) -> None:
        self.weights = weights
        self.parts = parts
        self.sha256 = sha256


class RateGroup:
    """Learning rate and weight decay of some parameters.

    Args:
        match: patterns for paths of parameters.
        lr_factor: factor of the optimiser's learning rate.
        weight_decay: replaces that of the optimiser.
    """

    def __init__(
        self,
        *,
        match: Patterns,
        lr_factor: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
        weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None,
    ) -> None:
        self.match = tuple(match)
        self.lr_factor = lr_factor
        self.weight_decay = weight_decay


class Unfreezing:
    """Frozen parameters that are trained after some steps.

    Args:
        at: the number of steps before.
        match: patterns for paths of parameters.
    """

    def __init__(self, *, at: Annotated[int, Field(ge=1)], match: Patterns) -> None:
        self.at = at
        self.match = tuple(match)


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """Where a training starts, and what it trains."""

    start: Blueprint[Start] | None = None
    freeze: Sequence[str] = ()
    unfreeze: Sequence[Blueprint[Unfreezing]] = ()
    groups: Sequence[Blueprint[RateGroup]] = ()
    depth_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    checkpointing: bool | Patterns = False

    def __post_init__(self) -> None:
        if self.unfreeze and not self.freeze:
            raise InvalidParameter("unfreeze", "'unfreeze' needs 'freeze', what is frozen before")
