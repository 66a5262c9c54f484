"""Triton kernels of the CTC loss that process frames independently."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

NEG = tl.constexpr(-1e30)


@triton.jit
def index_frames(mask, index, counts, T, BLOCK: tl.constexpr):
    """Write the numbers of the valid frames to index [B, T] and their count to counts [B].

    Grid (B,).
    """
    b = tl.program_id(0).to(tl.int64)
    count = 0
    for first in range(0, T, BLOCK):
        t = first + tl.arange(0, BLOCK)
        valid = (tl.load(mask + b * T + t, mask=t < T, other=0) != 0).to(tl.int32)
        position = count + tl.cumsum(valid, axis=0) - 1
        tl.store(index + b * T + position, t, mask=valid != 0)
        count += tl.sum(valid, axis=0)
    tl.store(counts + b, count)


@triton.jit
def log_sum_exp(
    logits, lse, rows, T, V, stride_b, stride_t, stride_v, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the normaliser of each frame, logits [B, T, V] -> lse [B, T].

    Grid (cdiv(B * T, ROWS),).
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row = tl.minimum(row, rows - 1)
    start = logits + ((row // T) * stride_b + (row % T) * stride_t)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    largest = tl.full((ROWS, BLOCK), NEG, tl.float32)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, V, BLOCK):
        column = first + columns
        x = tl.load(start + column * stride_v, mask=column < V, other=float("-inf"))
        x = x.to(tl.float32)
        updated = tl.maximum(largest, x)
        sums = sums * tl.exp(largest - updated) + tl.exp(x - updated)
        largest = updated
    m = tl.max(largest, axis=1)
    total = tl.sum(sums * tl.exp(largest - m[:, None]), axis=1)
    tl.store(lse + row, m + tl.log(total))


@triton.jit
def gradient(
    logits,  # [B, T, V]
    lse,  # [B, T]
    mask,  # [B, T]
    targets,  # [B, U]
    target_mask,  # [B, U]
    posteriors,  # [B, T, K, LANES]
    totals,  # [B]
    output,  # [B, T, V], the gradient of the log-likelihood
    T,
    V,
    U,
    blank,
    stride_b,
    stride_t,
    stride_v,
    LANES: tl.constexpr,
    K: tl.constexpr,
    BLOCK_U: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    """Compute the posterior of each symbol minus its probability; grid (B * T,)."""
    row = tl.program_id(0).to(tl.int64)
    b = row // T
    start = logits + b * stride_b + (row % T) * stride_t
    total = tl.load(totals + b)
    used = (total != float("-inf")) & (tl.load(mask + row) != 0)
    z = tl.load(lse + row)
    columns = tl.arange(0, BLOCK_V)
    for first in range(0, V, BLOCK_V):
        column = first + columns
        x = tl.load(start + column * stride_v, mask=column < V, other=0.0).to(tl.float32)
        tl.store(output + row * V + column, tl.where(used, -tl.exp(x - z), 0.0), mask=column < V)
    tl.debug_barrier()  # the sums below read what other threads have stored
    u = tl.arange(0, BLOCK_U)
    in_target = tl.load(target_mask + b * U + u, mask=u < tl.where(used, U, 0), other=0) != 0
    label = tl.load(targets + b * U + u, mask=in_target, other=blank)
    place = row * (LANES * K) + (u % K) * LANES + u // K
    posterior = tl.load(posteriors + place, mask=in_target, other=0.0)
    tl.atomic_add(output + row * V + label, posterior, mask=in_target)
    tl.atomic_add(output + row * V + blank, 1.0 - tl.sum(posterior, axis=0), mask=used)
