"""Triton kernel of the update of a search after a selection."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Conditions on constants select code at compile time, so they are not joined with others.

import triton
import triton.language as tl


@triton.jit
def update_search(
    tokens,  # [B, W, T], updated
    scores,  # [B, W], updated
    finished,  # [B, W], updated
    num_generated,  # [B], updated
    last_tokens,  # [B, W], output
    invalid,  # [], set to 1 if a logit of an active hypothesis is NaN or inf
    table,  # [B, W, S], updated; used with TABLE
    next_len,  # [], output; with one item, it can be the next argument
    cur_len,  # []
    selected,  # [B, W]
    parents,  # [B, W]
    new_scores,  # [B, W]
    nan_or_inf,  # [B, W]
    eos_ids,  # [E]
    max_length,  # []
    targets,  # tensors to which one item copies others
    sources,
    sizes,
    T,
    S,
    W: tl.constexpr,
    E: tl.constexpr,
    TABLE: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    BW: tl.constexpr,
    BE: tl.constexpr,
    BT: tl.constexpr,
    PDL: tl.constexpr,
):
    """Append the selected tokens of one item to their parents, and update scores and flags.

    The rows of the table are put in the order of the parents.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    item = tl.program_id(0)
    w = tl.arange(0, BW)
    at, within = item * W + w, w < W
    column = tl.load(cur_len)
    count = tl.load(num_generated + item)
    limit = tl.load(max_length)
    e = tl.arange(0, BE)
    eos = tl.load(eos_ids + e, mask=e < E, other=-1)
    token = tl.load(selected + at, mask=within, other=0)
    new_score = tl.load(new_scores + at, mask=within, other=0.0)
    bad = tl.load(nan_or_inf + at, mask=within, other=0) != 0
    ended = tl.load(finished + at, mask=within, other=1) != 0
    score = tl.load(scores + at, mask=within, other=0.0)
    wrong = bad & (ended == 0) & (score != float("-inf"))
    if tl.max(wrong.to(tl.int32), 0) > 0:
        tl.store(invalid, 1)

    ends = (token != token) | (count >= limit)
    if E > 0:
        ends = ends | (tl.max((token[:, None] == eos[None, :]).to(tl.int32), 1) > 0)
    if W > 1:
        parent = item * W + tl.load(parents + at, mask=within, other=0).to(tl.int32)
        ended = tl.load(finished + parent, mask=within, other=1) != 0
        for first in range(0, tl.maximum(T, S) if TABLE else T, BT):
            t = first + tl.arange(0, BT)
            mask = within[:, None] & (t < T)[None, :]
            row = tl.load(tokens + parent[:, None] * T + t[None, :], mask=mask, other=0)
            if TABLE:
                s_mask = within[:, None] & (t < S)[None, :]
                s_row = tl.load(table + parent[:, None] * S + t[None, :], mask=s_mask, other=0)
            # All rows are read before one is written.
            tl.debug_barrier()
            tl.store(tokens + at[:, None] * T + t[None, :], row, mask=mask)
            if TABLE:
                tl.store(table + at[:, None] * S + t[None, :], s_row, mask=s_mask)
            tl.debug_barrier()
    tl.debug_barrier()
    tl.store(tokens + at * T + column, token, mask=within)
    tl.store(last_tokens + at, token, mask=within)
    tl.store(finished + at, (ended | (ends & (count >= 1))).to(tl.int8), mask=within)
    tl.store(scores + at, new_score, mask=within)
    tl.store(num_generated + item, count + 1)
    if item == 0:
        tl.store(next_len, column + 1)
    for i in tl.static_range(COUNT):
        for first in range(0, sizes[i], BLOCK):
            n = first + tl.arange(0, BLOCK)
            tl.store(targets[i] + n, tl.load(sources[i] + n, mask=n < sizes[i]), mask=n < sizes[i])
