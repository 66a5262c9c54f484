"""Triton kernel of the forward-backward algorithm of CTC.

Notation: B batch size, T frames, U labels, V vocabulary including the blank. A lattice of U labels
has the blanks 0 to U and the labels 0 to U - 1.

One warp (more for many labels) computes the forward variables of an item, another the backward
variables: the same recursion on reversed frames and labels. P are the probabilities of the states
before the emission of a frame, S those after it:

    S = P * e,  P <- transitions(S)

The forward variable of a frame is S, the backward variable is P. In the first launch, both
recursions stop before the frame in the middle and store the variables of labels.
The likelihood is the sum of P * e * P' over the states of the frame in the middle. In the second
launch, each recursion continues through the frames of the other and replaces the stored variables
by posteriors. The posterior of the blank is 1 minus those of the labels, so variables of blanks are
never stored.
"""

# ruff: noqa: RUF005
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# mypy: disable-error-code="assignment"

import triton
import triton.language as tl

from zoo_fast.ctc.kernels.scaled import (
    LOW,
    add,
    decode,
    encode,
    largest_exponent,
    load_all,
    normalise_all,
    probability,
    store_all,
)

INTERVAL = tl.constexpr(8)  # frames between two normalisations


@triton.jit
def _load_inputs(
    logits,
    stored,
    t,
    label,
    exists,
    stride_t,
    stride_v,
    READ: tl.constexpr,
    LANES: tl.constexpr,
    K: tl.constexpr,
):
    """Return the logits of the labels in frame t, and with READ the variables of the other
    direction."""
    values, others = (), ()
    for j in tl.static_range(K):
        place = logits + t * stride_t + label[j] * stride_v
        values = values + (tl.load(place, mask=exists[j], other=0.0),)
        if READ:
            others = others + (tl.load(stored[j] + t * (LANES * K), mask=exists[j], other=0.0),)
        else:
            others = others + (tl.zeros((LANES,), tl.float32),)
    return values, others


@triton.jit
def _load_number(index, q, count, backward):
    """Return the number of valid frame q in the order of the direction, as int64."""
    k = tl.minimum(q, count - 1)
    k = tl.where(backward == 1, count - 1 - k, k)
    return tl.load(index + k, mask=count > 0, other=0).to(tl.int64)


@triton.jit
def _emit(Pm_b, Pn_b, Pm_l, Pn_l, values, y, z, exists, K: tl.constexpr):
    """Multiply the probabilities of the states by those of their symbols."""
    Sm_b, Sn_b, Sm_l, Sn_l = (), (), (), ()
    blank_m, blank_n = probability(y, z)
    for j in tl.static_range(K):
        m, n = probability(values[j], z)
        Sm_b, Sn_b = Sm_b + (Pm_b[j] * blank_m,), Sn_b + (Pn_b[j] + blank_n,)
        Sm_l = Sm_l + (tl.where(exists[j], Pm_l[j] * m, 0.0),)
        Sn_l = Sn_l + (tl.where(exists[j], Pn_l[j] + n, LOW),)
    return Sm_b, Sn_b, Sm_l, Sn_l


@triton.jit
def _transition(Sm_b, Sn_b, Sm_l, Sn_l, skip, LANES: tl.constexpr, K: tl.constexpr):
    """Sum over the states from which each state is reached."""
    lane = tl.arange(0, LANES)
    before = tl.maximum(lane - 1, 0)
    m = tl.where(lane > 0, tl.gather(Sm_l[K - 1], before, 0), 0.0)  # the label before blank u
    n = tl.where(lane > 0, tl.gather(Sn_l[K - 1], before, 0), LOW)
    Pm_b, Pn_b, Pm_l, Pn_l = (), (), (), ()
    for j in tl.static_range(K):
        m, n = add(Sm_b[j], Sn_b[j], m, n)
        Pm_b, Pn_b = Pm_b + (m,), Pn_b + (n,)
        m, n = tl.where(skip[j], m, Sm_b[j]), tl.where(skip[j], n, Sn_b[j])
        m, n = add(Sm_l[j], Sn_l[j], m, n)
        Pm_l, Pn_l = Pm_l + (m,), Pn_l + (n,)
        m, n = Sm_l[j], Sn_l[j]
    return Pm_b, Pn_b, Pm_l, Pn_l


@triton.jit
def _load_labels(targets, target_mask, U, V, blank, backward, LANES: tl.constexpr, K: tl.constexpr):
    """Return the labels, whether they exist, whether the blank before them can be skipped, and
    their number."""
    lane = tl.arange(0, LANES)
    counts = tl.zeros((LANES,), tl.int32)
    for j in tl.static_range(K):
        u = lane * K + j
        counts += (tl.load(target_mask + u, mask=u < U, other=0) != 0).to(tl.int32)
    count = tl.sum(counts, axis=0)
    labels, exists, skip = (), (), ()
    for j in tl.static_range(K):
        u = lane * K + j
        position = tl.where(backward == 1, count - 1 - u, u)
        neighbour = tl.where(backward == 1, position + 1, position - 1)
        present = u < count
        label = tl.load(targets + position, mask=present, other=blank)
        before = tl.load(targets + neighbour, mask=present & (u > 0), other=blank)
        is_label = (label >= 0) & (label < V) & (label != blank)
        labels, exists = labels + (tl.where(is_label, label, blank),), exists + (present,)
        skip = skip + (present & (u > 0) & (label != before),)
    return labels, exists, skip, count


@triton.jit
def _choose(condition, values, others, K: tl.constexpr):
    chosen = ()
    for j in tl.static_range(K):
        chosen = chosen + (tl.where(condition, values[j], others[j]),)
    return chosen


@triton.jit
def _store_codes(
    stored, bases, t, ms, ns, base, exists, LANES: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    for j in tl.static_range(K):
        tl.store(stored[j] + t * (LANES * K), encode(ms[j], ns[j], base), mask=exists[j])
    tl.store(bases + t, base)


@triton.jit
def _store_posteriors(
    stored,
    t,
    ms,
    ns,
    codes,
    shift,
    factor,
    exists,
    writes,
    LANES: tl.constexpr,
    K: tl.constexpr,
):
    for j in tl.static_range(K):
        m, n = decode(codes[j])
        scale = tl.exp2(tl.minimum(ns[j] + n + shift, 64.0))
        if writes:
            posterior = ms[j] * factor * (m * scale)
            tl.store(stored[j] + t * (LANES * K), posterior, mask=exists[j])


@triton.jit
def recursion(
    logits,  # [B, T, V]
    lse,  # [B, T]
    index,  # [B, T], numbers of the valid frames
    counts,  # [B], their count
    targets,  # [B, U]
    target_mask,  # [B, U]
    states,  # [B, T, K, LANES], variables of labels, then posteriors
    bases,  # [B, T], subtracted from the exponents of the variables
    middle,  # [B, 2, 4, K, LANES]: P of blanks and labels, each m and n
    exponents,  # [B, 2], whole and fractional part of the base-2 logarithm of the likelihood
    T,
    V,
    U,
    blank,
    stride_b,
    stride_t,
    stride_v,
    SECOND: tl.constexpr,  # whether this is the second launch
    STORE: tl.constexpr,  # whether gradients are needed
    LANES: tl.constexpr,
    K: tl.constexpr,
):
    """Run one half of the recursions; grid (B, 2), the second index is the direction."""
    b = tl.program_id(0).to(tl.int64)
    backward = tl.program_id(1)
    lane = tl.arange(0, LANES)
    label, exists, skip, count = _load_labels(
        targets + b * U, target_mask + b * U, U, V, blank, backward, LANES, K
    )
    frames, frame = tl.load(counts + b), logits + b * stride_b
    lse, index, bases = lse + b * T, index + b * T, bases + b * T
    stored = ()
    for j in tl.static_range(K):  # backward states are stored at the positions of forward states
        u = tl.where(backward == 1, count - 1 - lane * K - j, lane * K + j)
        u = tl.where(exists[j], u, lane * K + j)
        stored = stored + (states + b * T * (LANES * K) + (u % K) * LANES + u // K,)

    half = frames // 2
    own = tl.where(backward == 1, tl.maximum(frames - 1 - half, 0), half)
    start = middle + (2 * b + backward) * (4 * LANES * K) + lane
    if SECOND:
        Pm_b, Pn_b = load_all(start, LANES, K), load_all(start + LANES * K, LANES, K)
        Pm_l = load_all(start + 2 * LANES * K, LANES, K)
        Pn_l = load_all(start + 3 * LANES * K, LANES, K)
        first, last = own, frames
    else:
        Pm_b, Pn_b = (), ()
        for j in tl.static_range(K):
            Pm_b = Pm_b + (tl.where(lane * K + j == 0, 1.0, 0.0),)
            Pn_b = Pn_b + (tl.where(lane * K + j == 0, 0.0, LOW),)
        Pm_l, Pn_l = Pm_b, Pn_b
        first, last = own * 0, own
    READ: tl.constexpr = SECOND and STORE
    bits, factor, base = 0.0, 1.0, 0.0
    if READ:
        bits, factor = tl.load(exponents + 2 * b), tl.exp2(-tl.load(exponents + 2 * b + 1))
    # The inputs of a frame are loaded two frames ahead: the loop starts two frames early. Triton
    # does not carry a variable through the loop if it starts as the one that is assigned to it, so
    # that each one needs its own operation here.
    t0 = _load_number(index, first, frames, backward)
    t1 = _load_number(index, first + 1, frames, backward)
    t2 = _load_number(index, first, frames, backward)
    x0, v0 = _load_inputs(frame, stored, t0, label, exists, stride_t, stride_v, False, LANES, K)
    x1, v1 = _load_inputs(frame, stored, t1, label, exists, stride_t, stride_v, False, LANES, K)
    y0, z0 = tl.load(frame + t0 * stride_t + blank * stride_v), tl.load(lse + t0)
    y1, z1 = tl.load(frame + t1 * stride_t + blank * stride_v), tl.load(lse + t1)
    w0, w1 = 0.0 * z0, 0.0 * z1
    for q in range(first - 2, last):
        x2, v2 = _load_inputs(frame, stored, t2, label, exists, stride_t, stride_v, READ, LANES, K)
        y2, z2 = tl.load(frame + t2 * stride_t + blank * stride_v), tl.load(lse + t2)
        w2 = tl.load(bases + t2) if READ else w1
        t3 = _load_number(index, q + 3, frames, backward)
        if q >= first:
            if (q - first) % INTERVAL == 0:
                Pm_b, Pn_b = normalise_all(Pm_b, Pn_b, K)
                Pm_l, Pn_l = normalise_all(Pm_l, Pn_l, K)
                if STORE and not SECOND:
                    base = tl.maximum(largest_exponent(Pn_b, K), largest_exponent(Pn_l, K))
            Sm_b, Sn_b, Sm_l, Sn_l = _emit(Pm_b, Pn_b, Pm_l, Pn_l, x0, y0, z0, exists, K)
            if STORE:
                own_m = _choose(backward == 1, Pm_l, Sm_l, K)
                own_n = _choose(backward == 1, Pn_l, Sn_l, K)
                if SECOND:
                    # The forward recursion stores the posteriors of the middle.
                    _store_posteriors(
                        stored, t0, own_m, own_n, v0, w0 - bits, factor, exists,
                        q - backward >= first, LANES, K,
                    )  # fmt: skip
                else:
                    _store_codes(stored, bases, t0, own_m, own_n, base, exists, LANES, K)
            Pm_b, Pn_b, Pm_l, Pn_l = _transition(Sm_b, Sn_b, Sm_l, Sn_l, skip, LANES, K)
        x0, y0, z0, v0, w0, t0 = x1, y1, z1, v1, w1, t1
        x1, y1, z1, v1, w1, t1 = x2, y2, z2, v2, w2, t2
        t2 = t3
    if not SECOND:
        store_all(start, Pm_b, LANES, K)
        store_all(start + LANES * K, Pn_b, LANES, K)
        store_all(start + 2 * LANES * K, Pm_l, LANES, K)
        store_all(start + 3 * LANES * K, Pn_l, LANES, K)
        if STORE and (backward == 1) & (frames > 0):
            t = tl.load(index + half).to(tl.int64)
            base = tl.maximum(largest_exponent(Pn_b, K), largest_exponent(Pn_l, K))
            _store_codes(stored, bases, t, Pm_l, Pn_l, base, exists, LANES, K)
