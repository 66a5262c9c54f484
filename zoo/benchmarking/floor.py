"""The least time of a computation on a device."""

from __future__ import annotations

import torch

from zoo.interfaces import Floor

H200_BYTES_PER_SECOND = 4.2e12
"""Bytes read and written per second, measured by copying 2 GiB."""
H200_OPERATIONS_PER_SECOND = 789e12
"""Floating-point operations per second, measured by a bfloat16 product of 8192 x 8192 matrices."""


def floor_seconds(floor: Floor, device: torch.device) -> float | None:
    """Return the least time of the bytes and operations; None for devices that were not measured,
    and if both are 0."""
    if device.type != "cuda" or "H200" not in torch.cuda.get_device_name(device):
        return None
    return bound(floor)


def bound(floor: Floor) -> float | None:
    """Return the least time on an H200; None if both are 0."""
    seconds = max(
        floor.bytes / H200_BYTES_PER_SECOND, floor.operations / H200_OPERATIONS_PER_SECOND
    )
    return seconds or None
