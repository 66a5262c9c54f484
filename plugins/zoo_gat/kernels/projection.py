"""Triton kernel of two linear layers of the same inputs.

Notation: N nodes, F width of the inputs, C and T widths of the outputs.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl
from torch import Tensor

BLOCKS = {"NB": 64, "CB": 64, "FB": 16, "num_warps": 4, "num_stages": 3}


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
    output,  # [N, C], with stride
    terms,  # [N, T], with the same stride
    stride,
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
    """Compute a block of output, or of the terms in the last column; grid (blocks,)."""
    columns = tl.cdiv(C, CB) + 1
    row = (tl.program_id(0) // columns) * NB + tl.arange(0, NB)
    block = tl.program_id(0) % columns
    rows = row.to(tl.int64)[:, None] * stride
    if block < columns - 1:
        c = block * CB + tl.arange(0, CB)
        result = product(x, weight, bias, row, c, N, C, F, HAS_BIAS, FB)
        tl.store(output + rows + c[None, :], result, mask=(row[:, None] < N) & (c[None, :] < C))
    else:
        t = tl.arange(0, TB)
        both = product(x, term_weight, term_bias, row, t, N, T, F, HAS_BIAS, FB)
        tl.store(terms + rows + t[None, :], both, mask=(row[:, None] < N) & (t[None, :] < T))


def project_nodes(
    x: Tensor,
    weights: tuple[Tensor, Tensor],
    biases: tuple[Tensor, Tensor] | None,
    outputs: tuple[Tensor, Tensor],
) -> None:
    """Write the linear layers with weights [C, F], [T, F] of x [N, F] to outputs [N, C], [N, T].

    The outputs are columns of one tensor.
    """
    (N, F), C, T = x.shape, len(weights[0]), len(weights[1])
    assert outputs[0].stride() == outputs[1].stride()
    bias, term_bias = (x, x) if biases is None else biases
    columns = triton.cdiv(C, BLOCKS["CB"]) + 1
    project[(triton.cdiv(N, BLOCKS["NB"]) * columns,)](
        x, weights[0], bias, weights[1], term_bias, *outputs, outputs[0].stride(0), N, F, C, T,
        HAS_BIAS=biases is not None, TB=max(16, triton.next_power_of_2(T)), **BLOCKS,
    )  # fmt: skip


def empty_columns(like: Tensor, rows: int, widths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return uninitialised tensors [rows, width] that are columns of one tensor.

    The stride of the rows is a multiple of 16 elements, for wide loads.
    """
    total = sum(widths)
    columns = like.new_empty(rows, -(-total // 16) * 16)
    return columns[:, : widths[0]], columns[:, widths[0] : total]
