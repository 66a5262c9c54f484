"""Triton kernel of the matrix product of a step.

The batch of a step is small, so the inner dimension is divided among programs. Their partial sums
are added by the kernels that read the product, in a fixed order.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def product(
    a,  # [B, K]
    w,  # [groups, K, N]
    partials,  # [parts, B, N]
    a_b,
    B,
    group_rows,  # number of items of a group
    K,
    N,
    PART: tl.constexpr,  # length of a part of K, a multiple of KB
    MB: tl.constexpr,
    NB: tl.constexpr,
    KB: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Compute a block of the partial sums; grid (N blocks, blocks of all groups, parts)."""
    n = tl.program_id(0) * NB + tl.arange(0, NB)
    blocks = tl.cdiv(group_rows, MB)
    group = tl.program_id(1) // blocks
    row = (tl.program_id(1) % blocks) * MB + tl.arange(0, MB)
    m = group * group_rows + row
    w += group * K * N
    part = tl.program_id(2)
    sums = tl.zeros((MB, NB), tl.float32)
    for first in range(0, PART, KB):
        k = part * PART + first + tl.arange(0, KB)
        inside = (row[:, None] < group_rows) & (k[None, :] < K)
        x = tl.load(a + m[:, None] * a_b + k[None, :], mask=inside, other=0.0).to(tl.float32)
        inside = (k[:, None] < K) & (n[None, :] < N)
        y = tl.load(w + k[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
        sums = tl.dot(x, y, sums, input_precision=PRECISION)
    inside = (row[:, None] < group_rows) & (n[None, :] < N)
    tl.store(partials + (part * B + m[:, None]) * N + n[None, :], sums, mask=inside)


@triton.jit
def add_parts(value, partials, b, B, N, columns, mask, PARTS: tl.constexpr):
    """Add the partial sums of the columns of row b to a value."""
    for part in tl.static_range(PARTS):
        row = partials + (part * B + b) * N
        value += tl.load(row + columns, mask=mask, other=0.0)
    return value
