"""Masks in the forms that kernels take; each is computed once for all layers that share a mask."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from zoo.plugin import Mask

V = TypeVar("V")

_KEPT: dict[int, tuple[weakref.ref[Mask], dict[Hashable, Any]]] = {}
"""Results by the ID of a mask, deleted with it; the tensors of an equal mask may have changed."""


def is_causal_only(mask: Mask) -> bool:
    """Whether query t attends to keys 0 to t, and no key is masked for another reason."""
    starts_at_zero = isinstance(mask.offset, int) and mask.offset == 0
    others = mask.keys, mask.pairs, mask.window
    return mask.causal and starts_at_zero and all(other is None for other in others)


def without_full_keys(mask: Mask) -> Mask:
    """Return the mask without `keys` if no key is masked.

    The values of `keys` are read on the CPU only, and not in compiled graphs.
    """
    if mask.keys is None or type(mask.keys) is not Tensor or mask.keys.device.type != "cpu":
        return mask
    if torch.compiler.is_compiling():
        return mask
    simplified = _keep(mask, "keys", lambda: _simplify(mask))
    return mask if simplified is None else simplified


def without_wide_window(mask: Mask, T: int, S: int) -> Mask:
    """Return the mask without its window if it masks no key."""
    if mask.window is None or mask.window_masks(T, S):
        return mask
    if torch.compiler.is_compiling():
        return replace(mask, window=None)
    return _keep(mask, "window", lambda: replace(mask, window=None))


def additive_mask(mask: Mask, T: int, S: int, like: Tensor) -> Tensor | None:
    """Return the bias, with -inf at masked keys, in the dtype of ``like``: [B or 1, H, T, S].

    None without a bias. One with a gradient is computed for each layer.
    """
    if mask.bias is None:
        return None
    if mask.bias.requires_grad or torch.compiler.is_compiling():
        return _compute_additive(mask, mask.bias, T, S, like)
    bias = mask.bias
    key = (T, S, like.device, like.dtype)
    return _keep(mask, key, lambda: _compute_additive(mask, bias, T, S, like))


def _simplify(mask: Mask) -> Mask | None:
    """Return the mask without keys; None, not the mask, which would keep itself, if it has any."""
    assert mask.keys is not None
    return replace(mask, keys=None) if bool(mask.keys.all()) else None


def _compute_additive(mask: Mask, bias: Tensor, T: int, S: int, like: Tensor) -> Tensor:
    bias = bias.to(like.dtype)
    bias, dense = bias if bias.dim() == 4 else bias[None], mask.dense(T, S, like.device)
    return bias if dense is None else bias.masked_fill(~dense[:, None], float("-inf"))


def _keep(mask: Mask, key: Hashable, compute: Callable[[], V]) -> V:
    index, remove = id(mask), _KEPT.pop
    if index not in _KEPT:
        _KEPT[index] = weakref.ref(mask, lambda _: remove(index, None)), {}
    kept = _KEPT[index][1]
    if key not in kept:
        kept[key] = compute()
    value: V = kept[key]
    return value
