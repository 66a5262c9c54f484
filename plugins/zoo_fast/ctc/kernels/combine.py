"""Triton kernel of the CTC likelihood from the forward and backward variables of one frame."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_fast.ctc.kernels.scaled import LOW, probability

LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _product(forward, backward, u, reverse, m, n, LANES: tl.constexpr, K: tl.constexpr):
    """Multiply forward variables u, backward variables reverse and the probability m, n."""
    place, other = (u % K) * LANES + u // K, (reverse % K) * LANES + reverse // K
    m *= tl.load(forward + place) * tl.load(backward + other, mask=reverse >= 0, other=0.0)
    n += tl.load(forward + LANES * K + place)
    n += tl.load(backward + LANES * K + other, mask=reverse >= 0, other=0.0)
    return m, tl.where(m == 0, LOW, n)


@triton.jit
def combine(
    logits,  # [B, T, V]
    lse,  # [B, T]
    index,  # [B, T], numbers of the valid frames
    counts,  # [B], their count
    targets,  # [B, U]
    target_mask,  # [B, U]
    middle,  # [B, 2, 4, K, LANES]: P of blanks and labels, each m and n
    totals,  # [B], the log-likelihood
    exponents,  # [B, 2], whole and fractional part of its base-2 logarithm
    T,
    V,
    U,
    blank,
    stride_b,
    stride_t,
    stride_v,
    LANES: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum over the states of the frame in the middle; grid (B,)."""
    b = tl.program_id(0).to(tl.int64)
    frames = tl.load(counts + b)
    t = tl.load(index + b * T + frames // 2, mask=frames > 0, other=0).to(tl.int64)
    start, z = logits + b * stride_b + t * stride_t, tl.load(lse + b * T + t)
    u = tl.arange(0, BLOCK)
    in_target = tl.load(target_mask + b * U + u, mask=u < U, other=0) != 0
    count = tl.sum(in_target.to(tl.int32), axis=0)
    label = tl.load(targets + b * U + u, mask=in_target, other=blank)
    is_label = (label >= 0) & (label < V) & (label != blank)
    invalid = tl.max((in_target & (is_label == 0)).to(tl.int32), axis=0)
    label = tl.where(is_label, label, blank)
    forward = middle + b * (8 * LANES * K)
    m, n = probability(tl.load(start + blank * stride_v), z)
    inside = tl.minimum(u, LANES * K - 1)
    m_b, n_b = _product(forward, forward + 4 * LANES * K, inside, count - u, m, n, LANES, K)
    m, n = probability(tl.load(start + label * stride_v), z)
    forward += 2 * LANES * K
    m_l, n_l = _product(forward, forward + 4 * LANES * K, inside, count - 1 - u, m, n, LANES, K)
    whole = tl.maximum(tl.max(n_b, axis=0), tl.max(n_l, axis=0))
    m = tl.sum(m_b * tl.exp2(n_b - whole) + m_l * tl.exp2(n_l - whole), axis=0)
    m = tl.where(frames == 0, tl.where(count == 0, 1.0, 0.0), m)
    whole = tl.where(frames == 0, 0.0, whole)
    fraction = tl.log2(tl.where(m == 0, 1.0, m))
    total = (whole.to(tl.float64) + fraction.to(tl.float64)) * LN_2
    total = tl.where((m == 0) | (invalid == 1), float("-inf"), total)
    tl.store(totals + b, total.to(tl.float32))
    tl.store(exponents + 2 * b, whole)
    tl.store(exponents + 2 * b + 1, fraction)
