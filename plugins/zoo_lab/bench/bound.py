"""The least time of a computation on a device."""

from __future__ import annotations

from typing import NamedTuple

import torch

from zoo_lab.bench.benchmark import Bound


class Rates(NamedTuple):
    """What a GPU reaches.

    Attributes:
        bytes: bytes read and written per second, measured by copying 2 GiB.
        operations: floating-point operations per second, measured by a bfloat16 product of
            8192 x 8192 matrices.
    """

    bytes: float
    operations: float


RATES = {"H200": Rates(bytes=4.2e12, operations=789e12)}
"""By a part of the name that torch reports."""


def bound_seconds(bound: Bound, device: torch.device) -> float | None:
    """Return the least time of the bytes and operations; None for devices that were not measured,
    and if both are 0."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    rates = next((rates for model, rates in RATES.items() if model in name), None)
    return None if rates is None else min_seconds(bound, rates)


def min_seconds(bound: Bound, rates: Rates) -> float | None:
    """Return the larger time of the bytes and of the operations; None if both are 0."""
    return max(bound.bytes / rates.bytes, bound.operations / rates.operations) or None
