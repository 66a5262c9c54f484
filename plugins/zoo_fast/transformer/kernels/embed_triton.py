"""Triton kernel of the input of a decoding step.

Notation: R rows, V vocabulary, N positions, D width.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl


@triton.jit
def embed(
    tokens,  # [R]
    at,  # [R]
    table,  # [V, D]
    added,  # [N, D], used with ADDED
    output,  # [R, D]
    next_at,  # [R], output: at + 1
    factor,
    D,
    ADDED: tl.constexpr,
    BD: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute factor * table[token] + added[at] of one row."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0)
    d = tl.arange(0, BD)
    token, position = tl.load(tokens + row), tl.load(at + row)
    x = tl.load(table + token * D + d, mask=d < D, other=0.0)
    x = (x.to(tl.float32) * factor).to(table.dtype.element_ty)
    if ADDED:
        x += tl.load(added + position * D + d, mask=d < D, other=0.0)
    tl.store(output + row * D + d, x, mask=d < D)
    tl.store(next_at + row, position + 1)
