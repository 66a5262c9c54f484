"""Triton kernel that copies several small tensors."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def copy_each(targets, sources, sizes, COUNT: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Copy a block of one of the tensors, all of which are contiguous."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    tensor = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    for i in tl.static_range(COUNT):
        if tensor == i:
            mask = at < sizes[i]
            tl.store(targets[i] + at, tl.load(sources[i] + at, mask=mask), mask=mask)
