"""Tensors of two models that differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.layout import DTYPE_NAMES
from zoo_diff.side import Side

_CHUNK = 1 << 22
"""Elements that are compared in double precision together."""

Progress = Callable[[str, int, int], None]
"""Takes the name of a task, and the number of finished and of all steps."""


@dataclass(frozen=True)
class Distance:
    """The largest difference of two tensors of one shape.

    Attributes:
        absolute: the largest absolute difference; infinite where one value is not finite.
        relative: the same, divided by the largest finite absolute value of both.
    """

    absolute: float
    relative: float

    def as_json(self) -> dict[str, Any]:
        finite = math.isfinite(self.absolute)
        return {
            "max_difference": self.absolute if finite else None,
            "relative": self.relative if finite else None,
            "finite": finite,
        }


@dataclass(frozen=True)
class TensorDifference:
    """Two tensors of one name; `distance` is None if their shapes differ, or one has no values."""

    name: str
    a: Tensor
    b: Tensor
    distance: Distance | None

    def as_json(self) -> dict[str, Any]:
        sides = {
            side: {"dtype": DTYPE_NAMES.get(t.dtype, str(t.dtype)), "shape": list(t.shape)}
            for side, t in (("a", self.a), ("b", self.b))
        }
        values = {} if self.distance is None else self.distance.as_json()
        return {"name": self.name, **sides, **values}


@dataclass(frozen=True)
class TensorDifferences:
    """The tensors of two models.

    Attributes:
        same: the number of equal tensors.
        same_hash: how many of them have the same sha256 in both files, so their values are not
            read.
        not_compared: names of tensors of one shape and dtype without values.
    """

    same: int
    same_hash: int
    only_a: list[str]
    only_b: list[str]
    changed: list[TensorDifference]
    not_compared: list[str]

    @property
    def equal(self) -> bool:
        return not (self.only_a or self.only_b or self.changed)

    def as_json(self) -> dict[str, Any]:
        changed = [each.as_json() for each in self.changed]
        return {**vars(self), "changed": changed}


def compare_tensors(a: Side, b: Side, progress: Progress | None = None) -> TensorDifferences:
    """Compare the tensors of two models by name."""
    common = [name for name in a.tensors if name in b.tensors]
    same = same_hash = 0
    changed: list[TensorDifference] = []
    not_compared: list[str] = []
    for number, name in enumerate(common):
        one, two = a.tensors[name].detach(), b.tensors[name].detach()
        alike = one.shape == two.shape and one.dtype == two.dtype
        if alike and name in a.hashes and a.hashes[name] == b.hashes.get(name):
            same, same_hash = same + 1, same_hash + 1
        elif alike and (one.is_meta or two.is_meta):
            not_compared.append(name)
        elif alike and torch.equal(one, two):
            same += 1
        else:
            distance = None if one.is_meta or two.is_meta else measure_distance(one, two)
            changed.append(TensorDifference(name, one, two, distance))
        if progress is not None:
            progress("tensors", number + 1, len(common))
    return TensorDifferences(
        same,
        same_hash,
        [name for name in a.tensors if name not in b.tensors],
        [name for name in b.tensors if name not in a.tensors],
        changed,
        not_compared,
    )


def measure_distance(a: Tensor, b: Tensor) -> Distance | None:
    """Return the largest difference of two tensors; None if their shapes differ."""
    if a.shape != b.shape:
        return None
    largest = scale = 0.0
    for one, two in zip(*(torch.split(each.reshape(-1), _CHUNK) for each in (a, b)), strict=True):
        left, right = one.double(), two.double()
        same = (left == right) | (left.isnan() & right.isnan())
        gaps = torch.where(same, 0.0, (left - right).abs()).nan_to_num(math.inf, math.inf)
        values = torch.cat([left, right]).abs().nan_to_num(0, 0, 0)
        if gaps.numel():
            largest, scale = max(largest, float(gaps.max())), max(scale, float(values.max()))
    return Distance(largest, largest / scale if scale else largest)
