"""Copies of several tensors in few kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from zoo_fast.device.triton_support import why_not_triton

SMALL_BYTES = 2**16
"""Larger tensors are not copied together with those of other dtypes."""
MAX_SMALL = 16
"""Tensors of one copy."""

Pair = tuple[Tensor, Tensor]
"""A target and its source."""


def copy_into(pairs: Iterable[Pair]) -> None:
    """Copy tensors with one kernel for each dtype."""
    groups: dict[tuple[torch.dtype, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in pairs:
        group = groups.setdefault((target.dtype, source.dtype), ([], []))
        group[0].append(target)
        group[1].append(source)
    for own, others in groups.values():
        if len(own) == 1:
            own[0].copy_(others[0])
        else:
            torch._foreach_copy_(own, others)


def copy_small_into(pairs: Iterable[Pair]) -> None:
    """Copy tensors, the small ones in one kernel of Triton if it is available.

    This kernel starts while the one before still runs, as do those of a step around it.
    """
    small, others = divide_small(pairs)
    if small:
        from zoo_fast.generation.kernels.copy import copy_each

        copy_each(small)
    copy_into(others)


def divide_small(
    pairs: Iterable[Pair], max_bytes: int = MAX_SMALL * SMALL_BYTES
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs that one kernel of Triton copies, and the others.

    Args:
        max_bytes: bytes of the first ones together.
    """
    small: list[Pair] = []
    others: list[Pair] = []
    room = max_bytes
    for target, source in pairs:
        fits = len(small) < MAX_SMALL and target.nbytes <= room
        if fits and _is_small(target, source):
            small.append((target, source))
            room -= target.nbytes
        else:
            others.append((target, source))
    return small, others


def _is_small(target: Tensor, source: Tensor) -> bool:
    """Whether two tensors are small, have their values in the same order, and kernels take them."""
    return (
        0 < target.nbytes <= SMALL_BYTES
        and target.dtype == source.dtype
        and target.shape == source.shape
        and target.is_contiguous()
        and source.is_contiguous()
        and source.device == target.device
        and not target.is_complex()
        and why_not_triton(target) is None
    )


def copy_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of tensors."""
    copies = {name: torch.empty_like(tensor) for name, tensor in tensors.items()}
    copy_into(zip(copies.values(), tensors.values(), strict=True))
    return copies
