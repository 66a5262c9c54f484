"""Conditions of the kernel of softmax attention over short sequences."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.interfaces import Mask
from zoo_fast.device.triton_support import why_not_triton

MAX_LENGTH = 128
_MAX_WIDTH = 128
_DTYPES = (torch.bfloat16, torch.float16)


def why_not_short(query: Tensor, keys: Tensor, values: Tensor, mask: Mask) -> str | None:
    """Return the reason why a training step cannot use `attend_short`, None if it can.

    torch's kernels are made for long sequences; in half precision and training with sequences up to
    128 tokens this one is faster.
    """
    if not torch.is_grad_enabled() or not any(t.requires_grad for t in (query, keys, values)):
        return "no gradient is needed"
    if query.dtype not in _DTYPES:
        return f"the dtype is {query.dtype}"
    if keys.shape != values.shape or keys.shape[:2] != query.shape[:2]:
        return "heads or widths of queries, keys and values differ"
    if max(query.shape[2], keys.shape[2]) > MAX_LENGTH or query.shape[3] > _MAX_WIDTH:
        return f"a sequence is longer than {MAX_LENGTH}, or a head wider than {_MAX_WIDTH}"
    if not query.numel() or not keys.numel():
        return "queries or keys are empty"
    if mask.bias is not None or mask.pairs is not None or mask.window is not None:
        return "the mask has a bias, pairs or a window"
    if mask.causal and not (isinstance(mask.offset, int) and mask.offset == 0):
        return "the causal mask has an offset"
    return why_not_triton(query, keys, values)
