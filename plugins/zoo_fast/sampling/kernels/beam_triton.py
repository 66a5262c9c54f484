"""Triton kernel of a step of beam search, which `zoo_sampling.beam_pool` describes.

Notation: B items, W hypotheses, n candidates of a hypothesis, k candidates of an item, T tokens.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM108

import triton
import triton.language as tl

NEVER = tl.constexpr(2)


@triton.jit
def _penalise(scores, length, ALPHA: tl.constexpr, GNMT: tl.constexpr):
    if ALPHA == 0.0:
        return scores
    base = length.to(tl.float32)
    if GNMT:
        base = (5.0 + base) / 6.0
    return scores / tl.exp2(ALPHA * tl.log2(base))


@triton.jit
def _pick(values, chosen):
    """Return the only chosen value, 0 if there is none."""
    return tl.sum(tl.where(chosen, values, 0), 0)


@triton.jit
def beam_step(
    values,  # [B, W, n], logits
    candidates,  # [B, W, n], tokens
    highest,  # [B, W, C], maxima of chunks of the logits
    total,  # [B, W, C], sums of exp(x - maximum)
    finished,  # [B, W]
    scores,  # [B, W]
    tokens,  # [B, W, T]
    pool_tokens,  # [B, W, T]
    pool_scores,  # [B, W]
    pool_done,  # [B, 1]
    num_generated,  # [B]
    cur_len,  # []
    eos_ids,  # [E]
    selected,  # [B, W], output, as the following
    parents,  # [B, W]
    new_scores,  # [B, W]
    nan_or_inf,  # [B, W]
    new_pool_tokens,  # [B, W, T]
    new_pool_scores,  # [B, W]
    new_pool_done,  # [B, 1]
    length_limit,  # []
    pad,
    N,
    C,
    T,
    W: tl.constexpr,
    K: tl.constexpr,
    E: tl.constexpr,
    ALPHA: tl.constexpr,
    GNMT: tl.constexpr,
    EARLY: tl.constexpr,
    BW: tl.constexpr,
    BN: tl.constexpr,
    BC: tl.constexpr,
    BK: tl.constexpr,
    BT: tl.constexpr,
    PDL: tl.constexpr,
):
    """Continue the best candidates of an item and update its pool of finished hypotheses."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    item = tl.program_id(0)
    w, n, c, k = tl.arange(0, BW), tl.arange(0, BN), tl.arange(0, BC), tl.arange(0, BK)
    at, within = item * W + w, w < W

    chunk = at[:, None] * C + c[None, :]
    chunk_mask = within[:, None] & (c < C)[None, :]
    maxima = tl.load(highest + chunk, mask=chunk_mask, other=float("-inf"))
    sums = tl.load(total + chunk, mask=chunk_mask, other=0.0)
    maximum = tl.max(maxima, 1)
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    logsumexp = tl.log(tl.sum(sums * tl.exp(maxima - shift[:, None]), 1)) + maximum  # [BW]
    tl.store(nan_or_inf + at, ((logsumexp < float("inf")) == 0).to(tl.int8), mask=within)

    ended = tl.load(finished + at, mask=within, other=0) != 0
    place = at[:, None] * N + n[None, :]
    mask = within[:, None] & (n < N)[None, :]
    logit = tl.load(values + place, mask=mask, other=float("-inf"))
    # A finished hypothesis has padding as its only candidate.
    gain = tl.where(ended[:, None], tl.where(n == 0, 0.0, float("-inf"))[None, :],
                    logit - logsumexp[:, None])  # fmt: skip
    before = tl.load(scores + at, mask=within, other=float("-inf"))
    possible = mask & (ended[:, None] | (logit > float("-inf"))) & (gain == gain)
    totals = tl.where(possible, before[:, None] + gain, float("-inf"))
    totals = tl.where(totals == totals, totals, float("-inf"))

    # The k best candidates, best first.
    flat = w[:, None] * N + n[None, :]
    score = tl.full([BK], float("-inf"), tl.float32)
    token = tl.zeros([BK], tl.int64)
    parent = tl.zeros([BK], tl.int32)
    left = mask
    for i in tl.static_range(K):
        best = tl.max(tl.max(tl.where(left, totals, float("-inf")), 1), 0)
        equal = left & (totals == best)
        index = tl.min(tl.min(tl.where(equal, flat, 2147483647), 1), 0)
        row = index // N
        found = tl.load(candidates + item * W * N + index)
        is_ended = tl.load(finished + item * W + row) != 0
        score = tl.where(k == i, best, score)
        token = tl.where(k == i, tl.where(is_ended, pad, found), token)
        parent = tl.where(k == i, row, parent)
        left = left & (flat != index)

    count = tl.load(num_generated + item)
    count = tl.where(count < 1, 1, count)
    max_length = tl.load(length_limit)
    last = count >= max_length
    ends = token != token
    for e in tl.static_range(E):
        ends = ends | (token == tl.load(eos_ids + e))
    is_candidate = k < K
    alive = is_candidate & (ends == 0)
    # Candidates that do not end come first, then those that do, with a score of -inf.
    order = tl.where(
        alive,
        tl.cumsum(alive.to(tl.int32), 0) - 1,
        tl.sum(alive.to(tl.int32), 0) + tl.cumsum((is_candidate & ends).to(tl.int32), 0) - 1,
    )
    live_score = tl.where(alive, score, float("-inf"))
    best_live = tl.max(tl.where(is_candidate & (order < W), live_score, float("-inf")), 0)
    where = item * W + order
    goes_on = is_candidate & (order < W)
    tl.store(selected + where, token, mask=goes_on)
    tl.store(parents + where, parent.to(tl.int64), mask=goes_on)
    tl.store(new_scores + where, live_score, mask=goes_on)

    # The best of the pool and of the candidates that end now.
    done = tl.load(pool_done + item) != 0
    final = is_candidate & (ends | last) & (k < W) & (done == 0)
    length = tl.zeros([BK], tl.int32) + count.to(tl.int32)
    new = tl.where(final, _penalise(score, length, ALPHA, GNMT), float("-inf"))
    old = tl.load(pool_scores + at, mask=within, other=float("-inf"))
    old_left, new_left = within, is_candidate
    column = tl.load(cur_len)
    lowest = float("inf")
    for j in tl.static_range(W):
        best_old = tl.max(tl.where(old_left, old, float("-inf")), 0)
        best_new = tl.max(tl.where(new_left, new, float("-inf")), 0)
        has_old = tl.max(old_left.to(tl.int32), 0)
        from_pool = tl.where(best_old >= best_new, has_old, 0) != 0
        old_index = tl.min(tl.where(old_left & (old == best_old), w, BW), 0)
        new_index = tl.min(tl.where(new_left & (new == best_new), k, BK), 0)
        kept = tl.where(from_pool, best_old, best_new)
        old_left = old_left & (w != tl.where(from_pool, old_index, BW))
        new_left = new_left & (k != tl.where(from_pool, BK, new_index))
        lowest = tl.minimum(lowest, kept)
        tl.store(new_pool_scores + item * W + j, kept)
        source_row = _pick(parent, k == new_index)
        last_token = _pick(token, k == new_index)
        source = tl.where(from_pool, old_index, source_row)
        for first in range(0, T, BT):
            t = first + tl.arange(0, BT)
            offset = (item * W + source) * T + t
            row_old = tl.load(pool_tokens + offset, mask=t < T, other=0)
            row_new = tl.load(tokens + offset, mask=t < T, other=0)
            row_new = tl.where(t == column, last_token, row_new)
            result = tl.where(from_pool, row_old, row_new)
            tl.store(new_pool_tokens + (item * W + j) * T + t, result, mask=t < T)

    full = lowest > float("-inf")
    final_length = count
    if EARLY == NEVER and ALPHA > 0.0:
        final_length = max_length + count * 0
    best_possible = _penalise(best_live, final_length, ALPHA, GNMT)
    if EARLY == 1:
        enough = full
    else:
        enough = full & (best_possible <= lowest)
    stop = done | enough | last | (best_possible == float("-inf"))
    tl.store(new_pool_done + item, stop.to(tl.int8))
