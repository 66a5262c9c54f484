"""What beams share: continuations ranked together, and a pool of the best that have ended.

As Hugging Face's beam search does it, on tensors of fixed shape.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import SearchConfig, SearchState, Selection

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True)
class BeamConfig:
    """How hypotheses that have ended are ranked, and when an item needs no more of them."""

    length_penalty: float
    early_stopping: EarlyStopping

    def ranked(self, scores: Tensor, length: Tensor) -> Tensor:
        """scores [B, n] of hypotheses of that length [B, 1]."""
        return scores / length.double().pow(self.length_penalty).to(scores)


def empty(task: SearchConfig, width: int, groups: int = 1) -> dict[str, Tensor]:
    """A pool with no hypothesis in it: tokens [B, W, columns], scores [B, W], done [B, G]."""
    if width // groups > task.vocab:
        raise ZooError(
            f"a beam of {width // groups} hypotheses is wider than the vocabulary of {task.vocab}"
        )
    device = task.eos_ids.device
    return {
        "tokens": torch.full((task.batch, width, task.total_length), task.pad, device=device),
        "scores": torch.full((task.batch, width), -math.inf, device=device),
        "done": torch.zeros(task.batch, groups, dtype=torch.bool, device=device),
    }


def best(ranks: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Selection]:
    """The k continuations that rank highest, of ranks and totals [B, w, V]; best first."""
    V = totals.shape[-1]
    rank, flat = ranks.flatten(1).topk(k)
    return rank, Selection(flat % V, flat // V, totals.flatten(1).gather(1, flat))


@dataclass(frozen=True)
class BeamStep:
    """What came of a step.

    Shapes:
        chosen: the w that go on; pool: the best that ended so far; uses [B, k], how often each of
        the tokens [B, k] was taken, to go on or to end with.
    """

    chosen: Selection
    pool: Mapping[str, Tensor]
    tokens: Tensor
    token_counts: Tensor


def beam_step(ranks: Tensor, totals: Tensor, search: SearchState, rules: BeamConfig) -> BeamStep:
    """One step: the best that go on, and the pool with the best that ended.

    Enough candidates are looked at that w go on even if all the others end; only the first w of
    them may enter the pool.

    Shapes:
        ranks [B, w, V], what continuations are chosen by; totals [B, w, V], their scores.
    """
    w, V = ranks.shape[1:]
    task, pool, count = (
        search.task,
        search.sampler_state,
        search.num_generated.clamp(min=1)[:, None],
    )
    k = min(max(2, 1 + len(task.eos_ids)) * w, w * V)
    rank, found = best(ranks, totals, k)
    last = count >= task.max_length  # [B, 1]
    ends = task.is_eos(found.tokens)  # [B, k]

    on = rank.masked_fill(ends, -math.inf).topk(w).indices
    live_scores = found.scores.masked_fill(ends, -math.inf).gather(1, on)
    chosen = Selection(found.tokens.gather(1, on), found.parents.gather(1, on), live_scores)

    over = (ends | last) & (torch.arange(k, device=ends.device) < w)
    ended = rules.ranked(found.scores, count).masked_fill(~over | pool["done"], -math.inf)
    scores, sampler_state = torch.cat([pool["scores"], ended], dim=1).topk(w)
    sequences = _gather_rows(search.tokens, found.parents)
    sequences[..., search.cur_len] = found.tokens
    tokens = _gather_rows(torch.cat([pool["tokens"], sequences], dim=1), sampler_state)

    full = ~scores.isneginf().any(dim=1, keepdim=True)
    at_max_length = rules.early_stopping == "never" and rules.length_penalty > 0
    length = torch.full_like(count, task.max_length) if at_max_length else count
    best_possible = rules.ranked(live_scores.amax(dim=1, keepdim=True), length)
    enough = full if rules.early_stopping is True else full & (best_possible <= scores[:, -1:])
    done = pool["done"] | enough | last | best_possible.isneginf()
    taken = (over.scatter(1, on, True)) & ~found.scores.isneginf()
    return BeamStep(
        chosen, {"tokens": tokens, "scores": scores, "done": done}, found.tokens, taken.to(ranks)
    )


def finalize(search: SearchState, n_best: int) -> tuple[Tensor, Tensor]:
    """The best of the pool: tokens [B, N, columns], scores [B, N]; places left empty are padded."""
    scores, order = search.sampler_state["scores"].topk(n_best)
    tokens = _gather_rows(search.sampler_state["tokens"], order)
    return tokens.masked_fill(scores.isneginf()[..., None], search.task.pad), scores


def _gather_rows(tokens: Tensor, index: Tensor) -> Tensor:
    """Rows index [B, n] of tokens [B, m, T] -> [B, n, T]."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.shape[-1]))
