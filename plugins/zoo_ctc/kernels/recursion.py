"""Triton kernels of the forward-backward algorithm of CTC.

Notation: B batch size, T frames, U labels, V vocabulary including the blank. A lattice of U labels
has the blanks 0 to U and the labels 0 to U - 1.

Probabilities are pairs m, n for m * 2^n, with a whole number n: float32 then neither underflows nor
loses precision over many frames, and the recursion needs no logarithms.

One program computes the forward variables of an item, another the backward variables: the same
recursion on reversed frames and labels. A frame first multiplies by the emissions, then applies the
transitions:

    before = P,  after = S = P * e,  P <- transitions(S)

The forward variable of a frame is S, the backward variable is P. Both recursions stop in the middle
(first launch) and store the logarithms of the variables of labels. In the second launch, each
continues through the frames of the other and replaces the stored variables by posteriors. The
posterior of the blank is 1 minus those of the labels, so variables of blanks are never stored.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

LOW = tl.constexpr(-1e7)  # exponent of probability 0
NEG = tl.constexpr(-1e30)
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _add(m1, n1, m2, n2):
    n = tl.maximum(n1, n2)
    return m1 * tl.exp2(n1 - n) + m2 * tl.exp2(n2 - n), n


@triton.jit
def _multiply(m, n, values, lse, exists):
    """Multiply by the probabilities of logits; 0 where no label exists; NaN is kept."""
    e = tl.where(exists, (values.to(tl.float32) - lse) * LOG2_E, LOW)
    e = tl.where(e < LOW, LOW, e)
    whole = tl.floor(e)
    return m * tl.where(e == LOW, 0.0, tl.exp2(e - whole)), n + whole


@triton.jit
def _normalise(m, n):
    """Move the exponent of m to n, so that m is from 1 to 2."""
    exponent = (((m.to(tl.int32, bitcast=True) >> 23) & 255) - 127).to(tl.float32)
    return m * tl.exp2(-exponent), tl.where(m > 0, n + exponent, LOW)


@triton.jit
def _total(middle, b, u, count, BLOCK: tl.constexpr):
    """Compute the likelihood as m and n.

    It combines P of direction 0 (rows 0 to 3) and S of direction 1 (rows 4 to 7, reversed).
    """
    forward = middle + b * (16 * BLOCK)
    backward = forward + 12 * BLOCK
    blank, label = count - u, count - 1 - u
    m_b = tl.load(forward + u) * tl.load(backward + blank, mask=blank >= 0, other=0.0)
    n_b = tl.load(forward + BLOCK + u)
    n_b += tl.load(backward + BLOCK + blank, mask=blank >= 0, other=0.0)
    m_l = tl.load(forward + 2 * BLOCK + u)
    m_l *= tl.load(backward + 2 * BLOCK + label, mask=label >= 0, other=0.0)
    n_l = tl.load(forward + 3 * BLOCK + u)
    n_l += tl.load(backward + 3 * BLOCK + label, mask=label >= 0, other=0.0)
    n_b, n_l = tl.where(m_b == 0, LOW, n_b), tl.where(m_l == 0, LOW, n_l)
    whole = tl.maximum(tl.max(n_b, axis=0), tl.max(n_l, axis=0))
    terms = m_b * tl.exp2(n_b - whole) + m_l * tl.exp2(n_l - whole)
    return tl.sum(terms, axis=0), whole


@triton.jit
def log_sum_exp(logits, lse, T, V, stride_b, stride_t, stride_v, BLOCK: tl.constexpr):
    """Compute the normaliser of each frame, logits [B, T, V] -> lse [B, T]; grid (B * T,)."""
    row = tl.program_id(0).to(tl.int64)
    start = logits + (row // T) * stride_b + (row % T) * stride_t
    columns = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), NEG, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, V, BLOCK):
        column = first + columns
        x = tl.load(start + column * stride_v, mask=column < V, other=float("-inf"))
        x = x.to(tl.float32)
        updated = tl.maximum(largest, x)
        sums = sums * tl.exp(largest - updated) + tl.exp(x - updated)
        largest = updated
    m = tl.max(largest, axis=0)
    tl.store(lse + row, m + tl.log(tl.sum(sums * tl.exp(largest - m), axis=0)))


@triton.jit
def recursion(
    logits,  # [B, T, V]
    lse,  # [B, T]
    mask,  # [B, T]
    targets,  # [B, U]
    target_mask,  # [B, U]
    states,  # [B, T, U], variables of labels, then posteriors
    bases,  # [B, T], subtracted from the exponents of the variables
    middle,  # [B, 2, 8, BLOCK]: P of blanks and labels, S of blanks and labels, each m and n
    totals,  # [B]
    T,
    V,
    U,
    blank,
    stride_b,
    stride_t,
    stride_v,
    SECOND: tl.constexpr,  # whether this is the second launch
    STORE: tl.constexpr,  # whether gradients are needed
    BLOCK: tl.constexpr,
):
    """Run one half of the recursions; grid (B, 2), the second index is the direction."""
    b = tl.program_id(0).to(tl.int64)
    backward = tl.program_id(1)
    u = tl.arange(0, BLOCK)
    in_target = tl.load(target_mask + b * U + u, mask=u < U, other=0) != 0
    count = tl.sum(in_target.to(tl.int32), axis=0)
    exists = u < count
    position = tl.where(backward == 1, count - 1 - u, u)  # index of the label in the target
    neighbour = tl.where(backward == 1, position + 1, position - 1)
    label = tl.load(targets + b * U + position, mask=exists, other=blank)
    before = tl.load(targets + b * U + neighbour, mask=exists & (u > 0), other=blank)
    is_label = (label >= 0) & (label < V) & (label != blank)
    invalid = tl.max((exists & (is_label == 0)).to(tl.int32), axis=0)
    label = tl.where(is_label, label, blank)
    skip = exists & (u > 0) & (label != before)

    half = T // 2
    own = tl.where(backward == 1, T - half, half)  # frames of the first launch
    start = middle + (2 * b + backward) * (8 * BLOCK) + u
    if SECOND:
        m, whole = _total(middle, b, u, count, BLOCK)
        remainder = tl.log2(tl.where(m == 0, 1.0, m))
        total = (whole.to(tl.float64) + remainder.to(tl.float64)) * LN_2
        total = tl.where((m == 0) | (invalid == 1), float("-inf"), total)
        if backward == 0:
            tl.store(totals + b, total.to(tl.float32))
        Pm_b, Pn_b = tl.load(start), tl.load(start + BLOCK)
        Pm_l, Pn_l = tl.load(start + 2 * BLOCK), tl.load(start + 3 * BLOCK)
        first, last = own, T
    else:
        Pm_b, Pn_b = tl.where(u == 0, 1.0, 0.0), tl.where(u == 0, 0.0, LOW)
        Pm_l, Pn_l = Pm_b, Pn_b
        first, last = own * 0, own
    Sm_b, Sn_b = tl.where(u == 0, 1.0, 0.0), tl.where(u == 0, 0.0, LOW)
    Sm_l, Sn_l = tl.where(u == 0, 0.0, 0.0), tl.where(u == 0, LOW, LOW)
    base = tl.max(Pn_b, axis=0)

    frames = logits + b * stride_b
    labels = frames + label * stride_v
    blanks = frames + blank * stride_v
    stored = states + b * T * U + position
    previous = tl.maximum(u - 1, 0)
    step = tl.where(backward == 1, -1, 1)
    t = tl.where(backward == 1, T - 1 - first, first)
    # Values of the next frame are loaded ahead: x, y logits, z normaliser, f mask; in the second
    # launch also v, variables of the other direction with their base w.
    t0 = tl.minimum(tl.maximum(t, 0), T - 1)
    x0 = tl.load(labels + t0 * stride_t, mask=exists, other=0.0)
    y0 = tl.load(blanks + t0 * stride_t)
    z0 = tl.load(lse + b * T + t0)
    f0 = tl.load(mask + b * T + t0)
    if SECOND and STORE:
        v0 = tl.load(stored + t0 * U, mask=exists, other=NEG)
        w0 = tl.load(bases + b * T + t0)
    for k in range(first, last):
        ahead = tl.minimum(tl.maximum(t + step, 0), T - 1)
        x1 = tl.load(labels + ahead * stride_t, mask=exists, other=0.0)
        y1 = tl.load(blanks + ahead * stride_t)
        z1 = tl.load(lse + b * T + ahead)
        f1 = tl.load(mask + b * T + ahead)
        if SECOND and STORE:
            v1 = tl.load(stored + ahead * U, mask=exists, other=NEG)
            w1 = tl.load(bases + b * T + ahead)
        if k % 8 == 0:
            Pm_b, Pn_b = _normalise(Pm_b, Pn_b)
            Pm_l, Pn_l = _normalise(Pm_l, Pn_l)
            base = tl.maximum(tl.max(Pn_b, axis=0), tl.max(Pn_l, axis=0))
        valid = f0 != 0
        Am_b, An_b = _multiply(Pm_b, Pn_b, y0, z0, u >= 0)
        Am_l, An_l = _multiply(Pm_l, Pn_l, x0, z0, exists)
        Sm_b, Sn_b = tl.where(valid, Am_b, Sm_b), tl.where(valid, An_b, Sn_b)
        Sm_l, Sn_l = tl.where(valid, Am_l, Sm_l), tl.where(valid, An_l, Sn_l)
        if STORE:
            log_m = tl.log2(tl.maximum(tl.where(backward == 1, Pm_l, Sm_l), 1e-37))
            n = tl.where(backward == 1, Pn_l, Sn_l)
            if SECOND:
                posterior = tl.exp2(log_m + v0 - remainder + (n + w0 - whole))
                tl.store(stored + t * U, posterior, mask=exists)
                v0, w0 = v1, w1
            else:
                tl.store(stored + t * U, log_m + (n - base), mask=exists)
                tl.store(bases + b * T + t, base)
        shifted_m = tl.where(u > 0, tl.gather(Sm_l, previous, 0), 0.0)
        shifted_n = tl.where(u > 0, tl.gather(Sn_l, previous, 0), LOW)
        Nm_b, Nn_b = _add(Sm_b, Sn_b, shifted_m, shifted_n)
        from_m, from_n = tl.where(skip, Nm_b, Sm_b), tl.where(skip, Nn_b, Sn_b)
        Nm_l, Nn_l = _add(Sm_l, Sn_l, from_m, from_n)
        Pm_b, Pn_b = tl.where(valid, Nm_b, Pm_b), tl.where(valid, Nn_b, Pn_b)
        Pm_l, Pn_l = tl.where(valid, Nm_l, Pm_l), tl.where(valid, Nn_l, Pn_l)
        x0, y0, z0, f0 = x1, y1, z1, f1
        t += step
    if not SECOND:
        tl.store(start, Pm_b)
        tl.store(start + BLOCK, Pn_b)
        tl.store(start + 2 * BLOCK, Pm_l)
        tl.store(start + 3 * BLOCK, Pn_l)
        tl.store(start + 4 * BLOCK, Sm_b)
        tl.store(start + 5 * BLOCK, Sn_b)
        tl.store(start + 6 * BLOCK, Sm_l)
        tl.store(start + 7 * BLOCK, Sn_l)


@triton.jit
def gradient(
    logits,  # [B, T, V]
    lse,  # [B, T]
    mask,  # [B, T]
    targets,  # [B, U]
    target_mask,  # [B, U]
    posteriors,  # [B, T, U]
    totals,  # [B]
    output,  # [B, T, V], the gradient of the log-likelihood
    T,
    V,
    U,
    blank,
    stride_b,
    stride_t,
    stride_v,
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
    posterior = tl.load(posteriors + row * U + u, mask=in_target, other=0.0)
    tl.atomic_add(output + row * V + label, posterior, mask=in_target)
    tl.atomic_add(output + row * V + blank, 1.0 - tl.sum(posterior, axis=0), mask=used)
