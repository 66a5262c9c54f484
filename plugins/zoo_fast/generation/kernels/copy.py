"""Copies of several small tensors in one kernel, which starts while the one before still runs."""

from collections.abc import Sequence

import triton
from torch import Tensor

from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.generation.kernels import copy_triton

BLOCK = 1024


def copy_each(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Copy contiguous tensors; a target and its source have the same shape and dtype."""
    targets, sources = zip(*pairs, strict=True)
    sizes = tuple(target.numel() for target in targets)
    blocks = triton.cdiv(max(sizes), BLOCK)
    copy_triton.copy_each[(len(sizes), blocks)](
        targets,
        sources,
        sizes,
        COUNT=len(sizes),
        BLOCK=BLOCK,
        **dependent_launch(targets[0]),
    )
