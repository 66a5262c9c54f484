"""Tensors of a file that are copies of others."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from zoo import ZooError
from zoo.plugin import TensorReader


def is_same(weights: TensorReader, name: str, original: str) -> bool:
    """Return whether a tensor equals another, which must be in the file."""
    if original not in weights.metas:
        raise ZooError(f"the file has '{name}', but not '{original}', which it should equal")
    return torch.equal(weights.read(name), weights.read(original))


def check_copies(weights: TensorReader, copies: Mapping[str, str]) -> None:
    """Raise ZooError if a tensor of the file differs from the one that it should equal."""
    for name, original in copies.items():
        if name in weights.metas and not is_same(weights, name, original):
            raise ZooError(f"'{name}' differs from '{original}'; they should be shared")
