"""Triton kernel of a step of beam search, which `zoo_sampling.beam_pool` describes.

Notation: B items, W hypotheses, n candidates of a hypothesis, k candidates of an item, T tokens.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.
# ruff: noqa: SIM108

import triton
import triton.language as tl

from zoo_fast.sampling.kernels.ranks_triton import TAKEN, place_of, rank, value_of

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
    """Return the only chosen value of each row, 0 if there is none."""
    return tl.sum(tl.where(chosen, values, 0), 1)


@triton.jit
def _count_above(others, ranks):
    """Return for each rank how many of the others are above it."""
    return tl.sum((others[None, :] > ranks[:, None]).to(tl.int32), 1)


@triton.jit
def _at_place(ranks, places, wanted):
    """Return the rank at each wanted place, TAKEN if there is none."""
    return tl.max(tl.where(places[None, :] == wanted[:, None], ranks[None, :], TAKEN), 1)


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
    BE: tl.constexpr,
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

    # All that does not depend on values is loaded first, so that it is waited for once.
    chunk = at[:, None] * C + c[None, :]
    chunk_mask = within[:, None] & (c < C)[None, :]
    maxima = tl.load(highest + chunk, mask=chunk_mask, other=float("-inf"))
    sums = tl.load(total + chunk, mask=chunk_mask, other=0.0)
    place = at[:, None] * N + n[None, :]
    mask = within[:, None] & (n < N)[None, :]
    logit = tl.load(values + place, mask=mask, other=float("-inf"))
    ended = tl.load(finished + at, mask=within, other=0) != 0
    before = tl.load(scores + at, mask=within, other=float("-inf"))
    old = tl.load(pool_scores + at, mask=within, other=float("-inf"))
    done = tl.load(pool_done + item) != 0
    count = tl.load(num_generated + item)
    max_length = tl.load(length_limit)
    column = tl.load(cur_len)
    e = tl.arange(0, BE)
    eos = tl.load(eos_ids + e, mask=e < E, other=-1)

    maximum = tl.max(maxima, 1)
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    logsumexp = tl.log(tl.sum(sums * tl.exp(maxima - shift[:, None]), 1)) + maximum  # [BW]
    tl.store(nan_or_inf + at, ((logsumexp < float("inf")) == 0).to(tl.int8), mask=within)

    # A finished hypothesis has padding as its only candidate.
    gain = tl.where(ended[:, None], tl.where(n == 0, 0.0, float("-inf"))[None, :],
                    logit - logsumexp[:, None])  # fmt: skip
    possible = mask & (ended[:, None] | (logit > float("-inf"))) & (gain == gain)
    totals = tl.where(possible, before[:, None] + gain, float("-inf"))
    totals = tl.where(totals == totals, totals, float("-inf"))

    # The k best candidates, best first.
    ranks = tl.where(mask, rank(totals, w[:, None] * N + n[None, :]), TAKEN)
    ranks = tl.reshape(ranks, [BW * BN], can_reorder=True)
    best = tl.zeros([BK], tl.int64) + TAKEN
    for i in tl.static_range(K):
        first = tl.max(ranks, 0)
        best = tl.where(k == i, first, best)
        ranks = tl.where(ranks == first, TAKEN, ranks)
    is_candidate = k < K
    score = tl.where(is_candidate, value_of(best), float("-inf"))
    index = tl.where(is_candidate, place_of(best), 0)
    parent = index // N
    found = tl.load(candidates + item * W * N + index)
    is_ended = tl.load(finished + item * W + parent) != 0
    token = tl.where(is_ended, pad, found)

    count = tl.where(count < 1, 1, count)
    last = count >= max_length
    ends = token != token
    if E > 0:
        ends = tl.max((token[:, None] == eos[None, :]).to(tl.int32), 1) > 0
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

    # The best of the pool and of the candidates that end now; of equal ones, those of the pool.
    final = is_candidate & (ends | last) & (k < W) & (done == 0)
    length = tl.zeros([BK], tl.int32) + count.to(tl.int32)
    new = tl.where(final, _penalise(score, length, ALPHA, GNMT), float("-inf"))
    old_ranks = tl.where(within, rank(old, w), TAKEN)
    new_ranks = tl.where(is_candidate, rank(new, W + k), TAKEN)
    old_place = _count_above(old_ranks, old_ranks) + _count_above(new_ranks, old_ranks)
    new_place = _count_above(old_ranks, new_ranks) + _count_above(new_ranks, new_ranks)
    kept = tl.maximum(_at_place(old_ranks, old_place, w), _at_place(new_ranks, new_place, w))
    kept_score = tl.where(within, value_of(kept), float("inf"))
    tl.store(new_pool_scores + at, kept_score, mask=within)
    lowest = tl.min(kept_score, 0)
    source = tl.where(within, place_of(kept), 0)
    from_pool = source < W
    chosen = (source - W)[:, None] == k[None, :]
    last_token = _pick(token[None, :], chosen)
    old_row = item * W + tl.where(from_pool, source, 0)
    new_row = item * W + tl.where(from_pool, 0, _pick(parent[None, :], chosen))
    for start in range(0, T, BT):
        t = start + tl.arange(0, BT)
        inside = within[:, None] & (t < T)[None, :]
        use_old = from_pool[:, None]
        old_mask, new_mask = inside & use_old, inside & (use_old == 0)
        row_old = tl.load(pool_tokens + old_row[:, None] * T + t[None, :], mask=old_mask, other=0)
        row_new = tl.load(tokens + new_row[:, None] * T + t[None, :], mask=new_mask, other=0)
        row_new = tl.where((t == column)[None, :], last_token[:, None], row_new)
        result = tl.where(use_old, row_old, row_new)
        tl.store(new_pool_tokens + at[:, None] * T + t[None, :], result, mask=inside)

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
