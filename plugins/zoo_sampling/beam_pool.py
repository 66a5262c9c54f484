"""Shared by beam samplers: one search step, and the pool of the best finished hypotheses.

As in the beam search of transformers, with tensors of fixed shape. A step of an item with w
hypotheses:

1. The score of a candidate is the score of its parent plus the log-probability of its token. The k
   candidates with the highest rank (their score, less a diversity penalty) are considered; k is
   `num_candidates`. A finished hypothesis has one candidate, padding, of log-probability 0. Of
   candidates of the same rank any is selected.
2. The w best candidates whose token does not end a hypothesis are continued. If there are fewer,
   the others have the score -inf, and their tokens have no meaning.
3. Of the first w candidates, those that end (at the maximum length: all of them) enter the pool
   with their score divided by the length norm, unless the item is done. The pool keeps the w best
   ones; entries of score -inf are empty.
4. The item is done at the maximum length, if no candidate continues, or if the pool is full and, by
   `early_stopping`, no continued hypothesis can improve on it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import SearchConfig, SearchState, Selection

EarlyStopping = bool | Literal["never"]
LengthNorm = Literal["power", "gnmt"]


@dataclass(frozen=True)
class BeamConfig:
    """How finished hypotheses are ranked, and when an item is done."""

    length_penalty: float
    length_norm: LengthNorm
    early_stopping: EarlyStopping

    def penalize_length(self, scores: Tensor, length: Tensor) -> Tensor:
        """Divide scores [B, n] by the norm of the length [B, 1]."""
        base = length.double() if self.length_norm == "power" else (5 + length.double()) / 6
        return scores / base.pow(self.length_penalty).to(scores)


def migrate_length_penalty(version: int, params: dict[str, Any]) -> None:
    """Write out the default of version 1, the mean log-probability."""
    if version == 1:
        params.setdefault("length_penalty", 1.0)


def empty_pool(task: SearchConfig, width: int, groups: int = 1) -> dict[str, Tensor]:
    """Return an empty pool: tokens [B, W, total_length], scores [B, W], done [B, G]."""
    if width // groups > task.vocab:
        raise ZooError(
            f"beam width ({width // groups} per group) exceeds the vocabulary size ({task.vocab})"
        )
    device = task.eos_ids.device
    return {
        "tokens": torch.full((task.batch, width, task.total_length), task.pad, device=device),
        "scores": torch.full((task.batch, width), -math.inf, device=device),
        "done": torch.zeros(task.batch, groups, dtype=torch.bool, device=device),
    }


def top_continuations(ranks: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Selection]:
    """Return the ranks and the selection of the k highest-ranked of [B, w, V], best first."""
    V = totals.shape[-1]
    rank, flat = ranks.flatten(1).topk(k)
    return rank, Selection(flat % V, flat // V, totals.flatten(1).gather(1, flat))


@dataclass(frozen=True)
class BeamStep:
    """Result of a step.

    Shapes:
        selection: the w continued hypotheses; pool: the best finished hypotheses so far;
        token_counts [B, k]: how often each of the tokens [B, k] was selected.
    """

    selection: Selection
    pool: Mapping[str, Tensor]
    tokens: Tensor
    token_counts: Tensor


def num_candidates(task: SearchConfig, w: int) -> int:
    """Return k: enough candidates that w remain even if all others end."""
    return min(max(2, 1 + len(task.eos_ids)) * w, w * task.vocab)


def continue_best(
    rank: Tensor, candidates: Selection, search: SearchState, config: BeamConfig
) -> BeamStep:
    """Continue the best of the candidates and update the pool of finished hypotheses.

    Only the first w candidates may enter the pool.

    Shapes:
        rank, and tokens, parents and scores of the candidates: [B, k], best first; see
        `num_candidates`.
    """
    task, pool = search.task, search.sampler_state
    w, k = search.scores.shape[1], rank.shape[1]
    count = search.num_generated.clamp(min=1)[:, None]
    last = count >= task.max_length  # [B, 1]
    ends = task.is_eos(candidates.tokens)  # [B, k]

    live = rank.masked_fill(ends, -math.inf).topk(w).indices
    live_scores = candidates.scores.masked_fill(ends, -math.inf).gather(1, live)
    selection = Selection(
        candidates.tokens.gather(1, live), candidates.parents.gather(1, live), live_scores
    )

    final = (ends | last) & (torch.arange(k, device=ends.device) < w)
    ended = config.penalize_length(candidates.scores, count).masked_fill(
        ~final | pool["done"], -math.inf
    )
    scores, kept = torch.cat([pool["scores"], ended], dim=1).topk(w)
    sequences = _gather_rows(search.tokens, candidates.parents)
    search.write_next(sequences, candidates.tokens)
    tokens = _gather_rows(torch.cat([pool["tokens"], sequences], dim=1), kept)

    full = ~scores.isneginf().any(dim=1, keepdim=True)
    at_max_length = config.early_stopping == "never" and config.length_penalty > 0
    length = torch.zeros_like(count) + task.max_length if at_max_length else count
    best_possible = config.penalize_length(live_scores.amax(dim=1, keepdim=True), length)
    enough = full if config.early_stopping is True else full & (best_possible <= scores[:, -1:])
    done = pool["done"] | enough | last | best_possible.isneginf()
    selected = final.scatter(1, live, True) & ~candidates.scores.isneginf()
    return BeamStep(
        selection,
        {"tokens": tokens, "scores": scores, "done": done},
        candidates.tokens,
        selected.to(rank),
    )


def finalize(search: SearchState, n_best: int) -> tuple[Tensor, Tensor]:
    """Return the best of the pool: tokens [B, N, total_length], scores [B, N]."""
    scores, order = search.sampler_state["scores"].topk(n_best)
    tokens = _gather_rows(search.sampler_state["tokens"], order)
    return tokens.masked_fill(scores.isneginf()[..., None], search.task.pad), scores


def _gather_rows(tokens: Tensor, index: Tensor) -> Tensor:
    """Return rows index [B, n] of tokens [B, m, T]: [B, n, T]."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.shape[-1]))
