"""Triton kernel of two linear layers of the same inputs.

Notation: N nodes, F width of the inputs, C and T widths of the outputs.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

BLOCKS = {"NB": 64, "CB": 64, "FB": 32, "num_warps": 4, "num_stages": 3}


@triton.jit
def product(
    x, weight, bias, row, column, N, C, F: tl.constexpr, HAS_BIAS: tl.constexpr, FB: tl.constexpr
):
    """Compute rows and columns of x weightᵀ + bias; weight [C, F].

    In float32, three products of TensorFloat-32 parts have an error as small as one in float32;
    elements in half precision are TensorFloat-32.
    """
    PRECISION: tl.constexpr = "tf32x3" if x.dtype.element_ty == tl.float32 else "tf32"
    f = tl.arange(0, FB)
    sums = tl.zeros((row.shape[0], column.shape[0]), tl.float32)
    for first in range(0, F, FB):
        inside = first + f < F
        rows = x + row.to(tl.int64)[:, None] * F + (first + f)[None, :]
        inputs = tl.load(rows, mask=(row[:, None] < N) & inside[None, :], other=0.0)
        inputs = inputs.to(tl.float32)
        columns = weight + column[:, None] * F + (first + f)[None, :]
        weights = tl.load(columns, mask=(column[:, None] < C) & inside[None, :], other=0.0)
        weights = tl.trans(weights.to(tl.float32))
        sums = tl.dot(inputs, weights, sums, input_precision=PRECISION)
    if HAS_BIAS:
        sums += tl.load(bias + column, mask=column < C, other=0.0).to(tl.float32)[None, :]
    return sums


@triton.jit
def project(
    x,  # [N, F]
    weight,  # [C, F]
    bias,  # [C] if HAS_BIAS
    term_weight,  # [T, F]
    term_bias,  # [T] if HAS_BIAS
    output,  # [N, C]
    terms,  # [N, T]
    N,
    F: tl.constexpr,
    C: tl.constexpr,
    T: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    NB: tl.constexpr,
    CB: tl.constexpr,
    TB: tl.constexpr,
    FB: tl.constexpr,
):
    """Compute a block of output, or of the terms after the last columns; grid (blocks,)."""
    columns = tl.cdiv(C, CB) + (T > 0)
    row = (tl.program_id(0) // columns) * NB + tl.arange(0, NB)
    c = (tl.program_id(0) % columns) * CB + tl.arange(0, CB)
    rows, in_rows = row.to(tl.int64)[:, None], row[:, None] < N
    if T == 0 or tl.program_id(0) % columns < columns - 1:
        result = product(x, weight, bias, row, c, N, C, F, HAS_BIAS, FB)
        tl.store(output + rows * C + c[None, :], result, mask=in_rows & (c[None, :] < C))
    else:
        t = tl.arange(0, TB)
        both = product(x, term_weight, term_bias, row, t, N, T, F, HAS_BIAS, FB)
        tl.store(terms + rows * T + t[None, :], both, mask=in_rows & (t[None, :] < T))


class Terms(NamedTuple):
    """A linear layer with weight [T, F] and its output [N, T].

    It has a bias [T] if the other layer of the kernel has one.
    """

    weight: Tensor
    bias: Tensor | None
    output: Tensor


def project_nodes(
    x: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, terms: Terms | None = None
) -> None:
    """Write the linear layer with weight [C, F] of x [N, F] to output [N, C].

    Args:
        terms: another layer of x, computed in the same kernel.
    """
    (N, F), C = x.shape, len(weight)
    term_weight, term_bias, term_output = (x[:0], x, x) if terms is None else terms
    T = len(term_weight)
    project[(triton.cdiv(N, BLOCKS["NB"]) * (triton.cdiv(C, BLOCKS["CB"]) + (T > 0)),)](
        x, weight, x if bias is None else bias, term_weight, x if bias is None else term_bias,
        output, term_output, N, F, C, T,
        HAS_BIAS=bias is not None, TB=max(16, triton.next_power_of_2(T)), **BLOCKS,
    )  # fmt: skip
