"""Best tokens of logits in one pass, without the log-probabilities of the whole vocabulary.

Notation: B items, W hypotheses, V vocabulary, C chunks of a row.
"""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState, Selection
from zoo_fast.device.triton_support import dependent_launch
from zoo_fast.generation.fixed_search import to_scalar
from zoo_fast.sampling.kernels import beam_triton, candidates_triton
from zoo_sampling.beam_pool import BeamConfig

BLOCK = 2048
MAX_COUNT = 16
"""More candidates are slower than the log-probabilities of all tokens."""


class _Chunks(NamedTuple):
    values: Tensor  # [B, W, C, n]
    tokens: Tensor  # [B, W, C, n]
    highest: Tensor  # [B, W, C]
    total: Tensor  # [B, W, C]


def greedy_step(logits: Tensor, search: SearchState) -> NextTokens:
    """Select the best token of each row."""
    chunks = _best_of_chunks(logits, search, 1)
    rows = search.scores.numel()
    selection, invalid = empty_selection(search), torch.empty_like(search.finished)
    C = chunks.highest.shape[-1]
    candidates_triton.select_best[(rows,)](
        chunks.values,
        chunks.tokens,
        chunks.highest,
        chunks.total,
        search.finished.contiguous().view(torch.uint8),
        search.scores.contiguous(),
        selection.tokens,
        selection.parents,
        selection.scores,
        invalid.view(torch.int8),
        C,
        search.task.pad,
        BLOCK=triton.next_power_of_2(C),
        **dependent_launch(logits),
    )
    return NextTokens(selection, search.sampler_state, invalid)


def empty_selection(search: SearchState) -> Selection:
    """Return a selection whose values are to be written."""
    scores = search.scores
    tokens, parents = (torch.empty_like(scores, dtype=torch.long) for _ in range(2))
    return Selection(tokens, parents, torch.empty_like(scores))


def beam_step(logits: Tensor, search: SearchState, count: int, config: BeamConfig) -> NextTokens:
    """Compute the step of beam search with ``count`` candidates of each item."""
    chunks = _best_of_chunks(logits, search, count)
    B, W, T = search.tokens.shape
    pool, C = search.sampler_state, chunks.highest.shape[-1]
    scores = search.scores
    selection = empty_selection(search)
    invalid = torch.empty_like(search.finished)
    updated = {name: torch.empty_like(tensor) for name, tensor in pool.items()}
    eos_ids = search.task.eos_ids
    cur_len = to_scalar(search.cur_len, scores.device)
    beam_triton.beam_step[(B,)](
        chunks.values,
        chunks.tokens,
        chunks.highest,
        chunks.total,
        search.finished.contiguous().view(torch.int8),
        scores.contiguous(),
        search.tokens.contiguous(),
        pool["tokens"].contiguous(),
        pool["scores"].contiguous(),
        pool["done"].contiguous().view(torch.int8),
        search.num_generated,
        cur_len,
        eos_ids if len(eos_ids) else cur_len,
        selection.tokens,
        selection.parents,
        selection.scores,
        invalid.view(torch.int8),
        updated["tokens"],
        updated["scores"],
        updated["done"].view(torch.int8),
        to_scalar(search.task.max_length, scores.device),
        search.task.pad,
        C * count,
        C,
        T,
        W=W,
        K=count,
        E=len(eos_ids),
        ALPHA=float(config.length_penalty),
        GNMT=config.length_norm == "gnmt",
        EARLY=2 if config.early_stopping == "never" else int(config.early_stopping),
        BW=triton.next_power_of_2(W),
        BN=triton.next_power_of_2(C * count),
        BC=triton.next_power_of_2(C),
        BE=triton.next_power_of_2(max(len(eos_ids), 1)),
        BK=triton.next_power_of_2(count),
        BT=min(max(256, 2048 // W), triton.next_power_of_2(T)),
        **dependent_launch(logits),
    )
    return NextTokens(selection, updated, invalid)


def _best_of_chunks(logits: Tensor, search: SearchState, count: int) -> _Chunks:
    B, W, V = logits.shape
    rows = logits.reshape(B * W, V)
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    block = min(BLOCK, max(triton.next_power_of_2(V), count))
    C = triton.cdiv(V, block)
    new = search.scores.new_empty
    chunks = _Chunks(
        new(B, W, C, count, dtype=torch.float32),
        new(B, W, C, count, dtype=torch.long),
        new(B, W, C, dtype=torch.float32),
        new(B, W, C, dtype=torch.float32),
    )
    candidates_triton.best_of_chunks[(B * W, C)](
        rows,
        *chunks,
        V,
        rows.stride(0),
        -1 if search.task.selects_pad else search.task.pad,
        COUNT=count,
        BLOCK=block,
        num_warps=4,
        **dependent_launch(logits),
    )
    return chunks
