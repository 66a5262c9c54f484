"""Triton kernels of one step of the cells of all items, and of its gradient.

Notation: B batch, S source positions, H hidden width, G gates. Names such as ``x_b`` are strides.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.recurrent.kernels.attention_step import LOWEST, load, tanh
from zoo_fast.recurrent.kernels.product import add_parts

HALF_LOWEST = tl.constexpr(-5e29)


@triton.jit
def _weights(score, largest, scale):
    return tl.where(score > HALF_LOWEST, tl.exp(score - largest) * scale, 0.0)


@triton.jit
def _recurrent(output, bias, partials, b, B, N, columns, mask, PARTS: tl.constexpr):
    """Add bias and partial sums; load the result if there are no PARTS."""
    if PARTS == 0:
        value = load(output, mask)
    else:
        start = load(bias + columns, mask)
        value = add_parts(start, partials, b, B, N, columns, mask, PARTS)
    return value


@triton.jit
def advance(
    scores,  # [B, S]
    memory_gates,  # [B, S, G * H]
    x,  # [B, G * H], input terms of the gates
    r,  # [B, R], recurrent terms of the gates if there are no PARTS
    bias,  # [groups, N]
    partials,  # [PARTS, B, N]; the recurrent terms are the last R columns
    h,  # [B, H]
    c,  # [B, H], of an LSTM
    weights,  # [B, S], receives the softmax of the scores
    h_after,  # [B, H]
    c_after,  # [B, H]
    x_b,
    r_b,
    h_b,
    w_b,
    group_rows,  # number of items of a group
    N,
    D,  # first column of the recurrent terms
    S,
    H,
    PARTS: tl.constexpr,
    CELL: tl.constexpr,
    G: tl.constexpr,
    ATTEND: tl.constexpr,
    SP: tl.constexpr,  # power of two, at least S
    SB: tl.constexpr,
    HB: tl.constexpr,
):
    """Compute the weights and a block of the new state; grid (B, H blocks).

    CELL is 'rnn', 'lstm', 'gru', or 'none' to write the gates [B, G * H] to h_after, and the sum of
    bias and partials to r.
    """
    b = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * HB + tl.arange(0, HB)
    inside = j < H
    g0 = load(x + b * x_b + j, inside)
    g1 = g0
    g2 = g0
    g3 = g0
    if G > 1:
        g1 = load(x + b * x_b + H + j, inside)
        g2 = load(x + b * x_b + 2 * H + j, inside)
    if G > 3:
        g3 = load(x + b * x_b + 3 * H + j, inside)
    B = tl.num_programs(0)
    bias += b // group_rows * N
    # Loads before the loop overlap with those of the loop; stores are at the end.
    r0 = _recurrent(r + b * r_b + j, bias, partials, b, B, N, D + j, inside, PARTS)
    r1 = r0
    r2 = r0
    r3 = r0
    before = r0
    if CELL != "rnn":
        r1 = _recurrent(r + b * r_b + H + j, bias, partials, b, B, N, D + H + j, inside, PARTS)
    if (CELL == "gru") | (CELL == "lstm"):
        columns = D + 2 * H + j
        r2 = _recurrent(r + b * r_b + 2 * H + j, bias, partials, b, B, N, columns, inside, PARTS)
    if CELL == "gru":
        before = load(h + b * h_b + j, inside)
    if CELL == "lstm":
        columns = D + 3 * H + j
        r3 = _recurrent(r + b * r_b + 3 * H + j, bias, partials, b, B, N, columns, inside, PARTS)
        before = load(c + b * h_b + j, inside)
    if ATTEND:
        every = tl.arange(0, SP)
        all_scores = tl.load(scores + b * S + every, mask=every < S, other=LOWEST)
        largest = tl.max(all_scores, axis=0)
        total = tl.sum(_weights(all_scores, largest, 1.0), axis=0)
        scale = 1.0 / tl.where(total > 0, total, 1.0)
        if tl.program_id(1) == 0:
            row = _weights(all_scores, largest, scale)
            tl.store(weights + b * w_b + every, row, mask=every < S)
        a0 = tl.zeros((SB, HB), tl.float32)
        a1 = tl.zeros((SB, HB), tl.float32)
        a2 = tl.zeros((SB, HB), tl.float32)
        a3 = tl.zeros((SB, HB), tl.float32)
        for first in range(0, S, SB):
            s = first + tl.arange(0, SB)
            score = tl.load(scores + b * S + s, mask=s < S, other=LOWEST)
            weight = _weights(score, largest, scale)[:, None]
            rows = memory_gates + (b * S + s[:, None]) * (G * H) + j[None, :]
            used = (s[:, None] < S) & inside[None, :]
            a0 += weight * load(rows, used)
            if G > 1:
                a1 += weight * load(rows + H, used)
                a2 += weight * load(rows + 2 * H, used)
            if G > 3:
                a3 += weight * load(rows + 3 * H, used)
        g0 += tl.sum(a0, axis=0)
        if G > 1:
            g1 += tl.sum(a1, axis=0)
            g2 += tl.sum(a2, axis=0)
        if G > 3:
            g3 += tl.sum(a3, axis=0)
    if CELL == "none":
        if PARTS > 0:
            tl.store(r + b * r_b + j, r0, mask=inside)
            tl.store(r + b * r_b + H + j, r1, mask=inside)
        tl.store(h_after + b * h_b + j, g0, mask=inside)
        tl.store(h_after + b * h_b + H + j, g1, mask=inside)
        tl.store(h_after + b * h_b + 2 * H + j, g2, mask=inside)
    if CELL == "rnn":
        tl.store(h_after + b * h_b + j, tanh(g0 + r0), mask=inside)
    if CELL == "gru":
        n = tanh(g2 + tl.sigmoid(g0 + r0) * r2)
        tl.store(h_after + b * h_b + j, n + tl.sigmoid(g1 + r1) * (before - n), mask=inside)
    if CELL == "lstm":
        memory = tl.sigmoid(g1 + r1) * before + tl.sigmoid(g0 + r0) * tanh(g2 + r2)
        tl.store(c_after + b * h_b + j, memory, mask=inside)
        tl.store(h_after + b * h_b + j, tl.sigmoid(g3 + r3) * tanh(memory), mask=inside)


@triton.jit
def gate_gradient(
    dh,  # [B, H], gradient of the new state, without the partials
    partials,  # [PARTS, B, H]
    dc,  # [B, H], gradient of the new memory cell of an LSTM
    factors_x,  # [B, G * H]
    factors_h,  # [B, H], of the candidate of a GRU
    factors_direct,  # [B, H]
    factors_cell,  # [B, H]
    memory_gates,  # [B, S, G * H]
    grad_h,  # [B, H], a second part of the gradient of the previous state
    grad_c,  # [B, H]
    dx,  # [B, G * H], receives the gradient of the input terms
    dr,  # [B, G * H], receives the gradient of the recurrent terms
    before,  # [B, H], receives the gradient of the previous state, without its products
    dc_before,  # [B, H]
    d_weights,  # [B, S], receives the gradient of the weights
    dh_b,
    dc_b,
    f_b,
    fd_b,
    gh_b,
    dx_b,
    dr_b,
    S,
    H,
    PARTS: tl.constexpr,
    CELL: tl.constexpr,
    G: tl.constexpr,
    SB: tl.constexpr,
    HB: tl.constexpr,
):
    """Compute the gradients of the gates and of the weights; grid (B, S blocks + 1).

    The last program of an item writes the gradients of the gates, the others those of the weights.
    If CELL is 'none', dx is given and there are S blocks.
    """
    b = tl.program_id(0).to(tl.int64)
    B = tl.num_programs(0)
    if (CELL != "none") & (tl.program_id(1) == tl.num_programs(1) - 1):
        for start in range(0, H, HB):
            j = start + tl.arange(0, HB)
            inside = j < H
            grad = load(dh + b * dh_b + j, inside)
            grad = add_parts(grad, partials, b, B, H, j, inside, PARTS)
            cell_grad = grad
            direct = load(grad_h + b * gh_b + j, inside)
            candidate = grad
            if CELL == "gru":
                direct += grad * load(factors_direct + b * fd_b + j, inside)
                candidate = grad * load(factors_h + b * fd_b + j, inside)
                tl.debug_barrier()  # before dr is written, which can be in their place
            if CELL == "lstm":
                cell_grad = load(dc + b * dc_b + j, inside)
                cell_grad += grad * load(factors_cell + b * fd_b + j, inside)
                after = cell_grad * load(factors_direct + b * fd_b + j, inside)
                after += load(grad_c + b * gh_b + j, inside)
                tl.store(dc_before + b * H + j, after, mask=inside)
            tl.store(before + b * H + j, direct, mask=inside)
            for g in tl.static_range(G):
                gate = load(factors_x + b * f_b + g * H + j, inside)
                gate *= grad if g == 3 else cell_grad
                tl.store(dx + b * dx_b + g * H + j, gate, mask=inside)
                if (CELL == "gru") & (g == 2):
                    gate = candidate
                tl.store(dr + b * dr_b + g * H + j, gate, mask=inside)
    else:
        s = tl.program_id(1) * SB + tl.arange(0, SB)
        sums = tl.zeros((SB, HB), tl.float32)
        for start in range(0, H, HB):
            j = start + tl.arange(0, HB)
            inside = j < H
            rows = memory_gates + (b * S + s[:, None]) * (G * H) + j[None, :]
            used = (s[:, None] < S) & inside[None, :]
            if CELL == "none":
                for g in tl.static_range(G):
                    gate = load(dx + b * dx_b + g * H + j, inside)
                    sums += gate[None, :] * load(rows + g * H, used)
            else:
                grad = load(dh + b * dh_b + j, inside)
                grad = add_parts(grad, partials, b, B, H, j, inside, PARTS)
                cell_grad = grad
                if CELL == "lstm":
                    cell_grad = load(dc + b * dc_b + j, inside)
                    cell_grad += grad * load(factors_cell + b * fd_b + j, inside)
                for g in tl.static_range(G):
                    gate = load(factors_x + b * f_b + g * H + j, inside)
                    gate *= grad if g == 3 else cell_grad
                    sums += gate[None, :] * load(rows + g * H, used)
        tl.store(d_weights + b * S + s, tl.sum(sums, axis=1), mask=s < S)


@triton.jit
def gru_factors(
    x,  # [B * T, 3 * H], input terms of the gates
    r,  # [B, T + 1, 3 * H], recurrent terms of the gates
    h,  # [B, T + 1, H], states
    factors_x,  # [B * T, 3 * H]; can be x
    factors_h,  # [B, T + 1, H]; can be a part of r
    factors_direct,  # [B, T + 1, H]; likewise
    r_row,
    f_row,
    T,
    H,
    HB: tl.constexpr,
):
    """Compute the derivatives of a GRU; grid (B * T, H blocks)."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * HB + tl.arange(0, HB)
    inside = j < H
    state = row + row // T
    x += row * 3 * H + j
    r += state * r_row + j
    reset = tl.sigmoid(load(x, inside) + load(r, inside))
    z = tl.sigmoid(load(x + H, inside) + load(r + H, inside))
    u = load(r + 2 * H, inside)
    n = tanh(load(x + 2 * H, inside) + reset * u)
    h_before = load(h + state * H + j, inside)
    d_n = (1.0 - z) * (1.0 - n * n)
    tl.debug_barrier()  # before x and r are overwritten
    factors_x += row * 3 * H + j
    tl.store(factors_x, d_n * u * reset * (1.0 - reset), mask=inside)
    tl.store(factors_x + H, (h_before - n) * z * (1.0 - z), mask=inside)
    tl.store(factors_x + 2 * H, d_n, mask=inside)
    tl.store(factors_h + state * f_row + j, d_n * reset, mask=inside)
    tl.store(factors_direct + state * f_row + j, z, mask=inside)
