"""Triton kernels of sums over rows."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def sum_blocks(x_ptr, partial_ptr, N, C, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row[:, None] < N) & (column[None] < C)
    x = tl.load(x_ptr + row[:, None].to(tl.int64) * C + column[None], mask=inside, other=0.0)
    at = partial_ptr + tl.program_id(0) * C + column
    tl.store(at, tl.sum(x.to(tl.float32), axis=0), mask=column < C)


@triton.jit
def add(partial_ptr, out_ptr, P, C, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    group = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, P, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < P) & (column[None] < C)
        at = (group * P + row[:, None]) * C + column[None]
        total += tl.load(partial_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + group * C + column, tl.sum(total, axis=0), mask=column < C)
