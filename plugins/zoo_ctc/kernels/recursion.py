"""Triton kernel of the forward-backward algorithm of CTC.

Notation: B batch size, T frames, U labels, V vocabulary including the blank. A lattice of U labels
has the blanks 0 to U and the labels 0 to U - 1.

One warp computes the forward variables of an item, another the backward variables: the same
recursion on reversed frames and labels. P are the probabilities of the states before the emission
of a frame, S those after it:

    S = P * e,  P <- transitions(S)

The forward variable of a frame is S, the backward variable is P. In the first launch, both
recursions stop before the frame in the middle and store the logarithms of the variables of labels.
The likelihood is the sum of P * e * P' over the states of the frame in the middle. In the second
launch, each recursion continues through the frames of the other and replaces the stored variables
by posteriors. The posterior of the blank is 1 minus those of the labels, so variables of blanks are
never stored.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from zoo_ctc.kernels.scaled import (
    LOW,
    add,
    largest_exponent,
    log2,
    normalise_all,
    probability,
    store_all,
)

LN_2 = tl.constexpr(0.6931471805599453)
CHUNK = tl.constexpr(4)  # frames whose logits are loaded together, ahead of their use


@triton.jit
def _load_frame(frame, lse, t, label, exists, blank, stride_t, stride_v, K: tl.constexpr):
    """Return the logits of the labels, the logit of the blank and the normaliser of frame t."""
    start = frame + t * stride_t
    values = ()
    for j in tl.static_range(K):
        values = values + (tl.load(start + label[j] * stride_v, mask=exists[j], other=0.0),)
    return values, tl.load(start + blank * stride_v), tl.load(lse + t)


@triton.jit
def _load_chunk(
    frame, lse, stored, bases, ts, label, exists, blank, stride_t, stride_v,
    READ: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Load the inputs of CHUNK frames ts; with READ, also the variables of the other direction."""
    chunk = ()
    for c in tl.static_range(CHUNK):
        values, y, z = _load_frame(frame, lse, ts[c], label, exists, blank, stride_t, stride_v, K)
        if READ:
            others = ()
            for j in tl.static_range(K):
                others = others + (tl.load(stored[j] + ts[c].to(tl.int64) * (32 * K)),)
            chunk = chunk + ((values, y, z, others, tl.load(bases + ts[c])),)
        else:
            chunk = chunk + ((values, y, z),)
    return chunk


@triton.jit
def _load_numbers(index, q, count, backward):
    """Return the numbers of CHUNK frames from q in the order of the direction."""
    ts = ()
    for c in tl.static_range(CHUNK):
        k = tl.minimum(q + c, count - 1)
        k = tl.where(backward == 1, count - 1 - k, k)
        ts = ts + (tl.load(index + k, mask=count > 0, other=0),)
    return ts


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
def _transition(Sm_b, Sn_b, Sm_l, Sn_l, skip, K: tl.constexpr):
    """Sum over the states from which each state is reached."""
    lane = tl.arange(0, 32)
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
def _total(middle, Sm_b, Sn_b, Sm_l, Sn_l, count, K: tl.constexpr):
    """Compute the likelihood, as m and n, from the emitted states of one direction and the states
    of the other, stored in reversed order."""
    lane = tl.arange(0, 32)
    m_all, n_all = (), ()
    for j in tl.static_range(K):
        blank, label = count - lane * K - j, count - 1 - lane * K - j
        place = middle + (blank % K) * 32 + blank // K
        m = Sm_b[j] * tl.load(place, mask=blank >= 0, other=0.0)
        n = Sn_b[j] + tl.load(place + 32 * K, mask=blank >= 0, other=0.0)
        m_all, n_all = m_all + (m,), n_all + (tl.where(m == 0, LOW, n),)
        place = middle + 64 * K + (label % K) * 32 + label // K
        m = Sm_l[j] * tl.load(place, mask=label >= 0, other=0.0)
        n = Sn_l[j] + tl.load(place + 32 * K, mask=label >= 0, other=0.0)
        m_all, n_all = m_all + (m,), n_all + (tl.where(m == 0, LOW, n),)
    whole = largest_exponent(n_all, 2 * K)
    terms = m_all[0] * tl.exp2(n_all[0] - whole)
    for j in tl.static_range(1, 2 * K):
        terms += m_all[j] * tl.exp2(n_all[j] - whole)
    return tl.sum(terms, axis=0), whole


@triton.jit
def _load_labels(targets, target_mask, U, V, blank, backward, K: tl.constexpr):
    """Return the labels, whether they exist, whether the blank before them can be skipped, their
    number, and 1 if one is invalid."""
    lane = tl.arange(0, 32)
    counts = tl.zeros((32,), tl.int32)
    for j in tl.static_range(K):
        u = lane * K + j
        counts += (tl.load(target_mask + u, mask=u < U, other=0) != 0).to(tl.int32)
    count = tl.sum(counts, axis=0)
    labels, exists, skip, invalid = (), (), (), tl.zeros((32,), tl.int32)
    for j in tl.static_range(K):
        u = lane * K + j
        position = tl.where(backward == 1, count - 1 - u, u)
        neighbour = tl.where(backward == 1, position + 1, position - 1)
        present = u < count
        label = tl.load(targets + position, mask=present, other=blank)
        before = tl.load(targets + neighbour, mask=present & (u > 0), other=blank)
        is_label = (label >= 0) & (label < V) & (label != blank)
        invalid = tl.maximum(invalid, (present & (is_label == 0)).to(tl.int32))
        labels, exists = labels + (tl.where(is_label, label, blank),), exists + (present,)
        skip = skip + (present & (u > 0) & (label != before),)
    return labels, exists, skip, count, tl.max(invalid, axis=0)


@triton.jit
def _choose(condition, values, others, K: tl.constexpr):
    chosen = ()
    for j in tl.static_range(K):
        chosen = chosen + (tl.where(condition, values[j], others[j]),)
    return chosen


@triton.jit
def _store_logs(stored, bases, t, ms, ns, base, exists, K: tl.constexpr):
    for j in tl.static_range(K):
        tl.store(stored[j] + t * (32 * K), log2(ms[j], ns[j], base), mask=exists[j])
    tl.store(bases + t, base)


@triton.jit
def _store_posteriors(
    stored, t, ms, ns, others, shift, remainder, exists, writes, K: tl.constexpr
):  # fmt: skip
    for j in tl.static_range(K):
        log = log2(ms[j], ns[j], -shift) + (others[j] - remainder)
        tl.store(stored[j] + t * (32 * K), tl.exp2(log), mask=exists[j] & writes)


@triton.jit
def recursion(
    logits,  # [B, T, V]
    lse,  # [B, T]
    index,  # [B, T], numbers of the valid frames
    counts,  # [B], their count
    targets,  # [B, U]
    target_mask,  # [B, U]
    states,  # [B, T, K, 32], variables of labels, then posteriors
    bases,  # [B, T], subtracted from the exponents of the variables
    middle,  # [B, 2, 4, K, 32]: P of blanks and labels, each m and n
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
    K: tl.constexpr,
):
    """Run one half of the recursions; grid (B, 2), the second index is the direction."""
    b = tl.program_id(0).to(tl.int64)
    backward = tl.program_id(1)
    lane = tl.arange(0, 32)
    label, exists, skip, count, invalid = _load_labels(
        targets + b * U, target_mask + b * U, U, V, blank, backward, K
    )
    frames, frame = tl.load(counts + b), logits + b * stride_b
    lse, index, bases = lse + b * T, index + b * T, bases + b * T
    stored = ()
    for j in tl.static_range(K):  # backward states are stored at the positions of forward states
        u = tl.where(backward == 1, count - 1 - lane * K - j, lane * K + j)
        u = tl.where(exists[j], u, lane * K + j)
        stored = stored + (states + b * T * (32 * K) + (u % K) * 32 + u // K,)

    half = frames // 2
    own = tl.where(backward == 1, tl.maximum(frames - 1 - half, 0), half)
    start = middle + (2 * b + backward) * (128 * K) + lane
    Pm_b, Pn_b, Pm_l, Pn_l = (), (), (), ()
    for j in tl.static_range(K):
        if SECOND:
            Pm_b, Pn_b = Pm_b + (tl.load(start + 32 * j),), Pn_b + (tl.load(start + 32 * (K + j)),)
            Pm_l = Pm_l + (tl.load(start + 32 * (2 * K + j)),)
            Pn_l = Pn_l + (tl.load(start + 32 * (3 * K + j)),)
        else:
            first = lane * K + j == 0
            m, n = tl.where(first, 1.0, 0.0), tl.where(first, 0.0, LOW)
            Pm_b, Pn_b, Pm_l, Pn_l = Pm_b + (m,), Pn_b + (n,), Pm_l + (m,), Pn_l + (n,)
    if SECOND:
        first, last = own, frames
    else:
        first, last = own * 0, own
    ts = _load_numbers(index, first, frames, backward)
    READ: tl.constexpr = SECOND and STORE
    chunk = _load_chunk(
        frame, lse, stored, bases, ts, label, exists, blank, stride_t, stride_v, READ, K
    )
    if SECOND:
        values, y, z = chunk[0][0], chunk[0][1], chunk[0][2]
        Sm_b, Sn_b, Sm_l, Sn_l = _emit(Pm_b, Pn_b, Pm_l, Pn_l, values, y, z, exists, K)
        other = middle + (2 * b + 1 - backward) * (128 * K)
        m, whole = _total(other, Sm_b, Sn_b, Sm_l, Sn_l, count, K)
        m = tl.where(frames == 0, tl.where(count == 0, 1.0, 0.0), m)
        whole = tl.where(frames == 0, 0.0, whole)
        remainder = tl.log2(tl.where(m == 0, 1.0, m))
        total = (whole.to(tl.float64) + remainder.to(tl.float64)) * LN_2
        total = tl.where((m == 0) | (invalid == 1), float("-inf"), total)
        if backward == 0:
            tl.store(totals + b, total.to(tl.float32))
    if STORE or not SECOND:
        next_ts = _load_numbers(index, first + CHUNK, frames, backward)
        base = largest_exponent(Pn_b, K)
        for q in range(first, last, CHUNK):
            next_chunk = _load_chunk(
                frame, lse, stored, bases, next_ts, label, exists, blank, stride_t, stride_v, READ, K
            )
            later_ts = _load_numbers(index, q + 2 * CHUNK, frames, backward)
            Pm_b, Pn_b = normalise_all(Pm_b, Pn_b, K)
            Pm_l, Pn_l = normalise_all(Pm_l, Pn_l, K)
            if STORE:
                base = tl.maximum(largest_exponent(Pn_b, K), largest_exponent(Pn_l, K))
            for c in tl.static_range(CHUNK):
                if q + c < last:
                    values, y, z = chunk[c][0], chunk[c][1], chunk[c][2]
                    t = ts[c].to(tl.int64)
                    Sm_b, Sn_b, Sm_l, Sn_l = _emit(Pm_b, Pn_b, Pm_l, Pn_l, values, y, z, exists, K)
                    if STORE:
                        own_m = _choose(backward == 1, Pm_l, Sm_l, K)
                        own_n = _choose(backward == 1, Pn_l, Sn_l, K)
                        if SECOND:
                            # The forward recursion stores the posteriors of the middle.
                            writes = (backward == 0) | (q + c > first)
                            others, shift = chunk[c][3], chunk[c][4] - whole
                            _store_posteriors(
                                stored, t, own_m, own_n, others, shift, remainder, exists, writes, K
                            )
                        else:
                            _store_logs(stored, bases, t, own_m, own_n, base, exists, K)
                    Pm_b, Pn_b, Pm_l, Pn_l = _transition(Sm_b, Sn_b, Sm_l, Sn_l, skip, K)
            chunk, ts, next_ts = next_chunk, next_ts, later_ts
    if not SECOND:
        store_all(start, Pm_b, K)
        store_all(start + 32 * K, Pn_b, K)
        store_all(start + 64 * K, Pm_l, K)
        store_all(start + 96 * K, Pn_l, K)
        if STORE and (backward == 1) & (frames > 0):
            t = tl.load(index + half).to(tl.int64)
            base = tl.maximum(largest_exponent(Pn_b, K), largest_exponent(Pn_l, K))
            _store_logs(stored, bases, t, Pm_l, Pn_l, base, exists, K)
