"""Best tokens of logits in one pass, without the log-probabilities of the whole vocabulary.

Notation: B items, W hypotheses, V vocabulary, C chunks of a row.
"""

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from zoo.plugin import SearchState
from zoo_sampling.kernels import candidates_triton

BLOCK = 2048
MAX_COUNT = 32
"""More candidates of a chunk are slower than the log-probabilities of all tokens."""


class _Chunks(NamedTuple):
    values: Tensor  # [B, W, C, n]
    tokens: Tensor  # [B, W, C, n]
    highest: Tensor  # [B, W, C]
    total: Tensor  # [B, W, C]


def greedy_step(logits: Tensor, search: SearchState) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best token of each row, its score, and whether a logit is NaN or inf: [B, 1]."""
    chunks = _best_of_chunks(logits, search, 1)
    rows = search.scores.numel()
    tokens = torch.empty_like(search.scores, dtype=torch.long)
    scores, invalid = torch.empty_like(search.scores), torch.empty_like(search.finished)
    C = chunks.highest.shape[-1]
    candidates_triton.select_best[(rows,)](
        chunks.values,
        chunks.tokens,
        chunks.highest,
        chunks.total,
        search.finished.contiguous().view(torch.uint8),
        search.scores.contiguous(),
        tokens,
        scores,
        invalid.view(torch.int8),
        C,
        search.task.pad,
        BLOCK=triton.next_power_of_2(C),
    )
    return tokens, scores, invalid


def beam_candidates(
    logits: Tensor, search: SearchState, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probabilities and tokens [B, W, n] that contain the best of each row.

    The third value [B, W] is True where a logit is NaN or inf. A finished hypothesis has padding as
    its only candidate.
    """
    chunks = _best_of_chunks(logits, search, count)
    maximum = chunks.highest.amax(dim=-1, keepdim=True)  # [B, W, 1]
    shift = maximum.masked_fill(maximum.isneginf(), 0.0)
    weights = chunks.total * (chunks.highest - shift).exp()
    logsumexp = weights.sum(dim=-1, keepdim=True).log() + maximum
    logprobs = chunks.values.flatten(2) - logsumexp
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))
    first = torch.arange(logprobs.shape[-1], device=logits.device) == 0
    pad_only = torch.zeros_like(logprobs[:1, :1]).masked_fill(~first, float("-inf"))
    finished = search.finished[..., None]
    return (
        torch.where(finished, pad_only, logprobs),
        chunks.tokens.flatten(2).masked_fill(finished, search.task.pad),
        ~(logsumexp[..., 0] < float("inf")),
    )


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
        -1 if search.task.pad_ends else search.task.pad,
        COUNT=count,
        BLOCK=block,
        num_warps=4,
    )
    return chunks
