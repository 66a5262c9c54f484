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
from zoo.plugin import Search, Selection, Task

Early = bool | Literal["never"]


@dataclass(frozen=True)
class Rules:
    """How hypotheses that have ended are ranked, and when an item needs no more of them."""

    length_penalty: float
    early_stopping: Early

    def ranked(self, scores: Tensor, length: Tensor) -> Tensor:
        """scores [B, n] of hypotheses of that length [B, 1]."""
        return scores / length.double().pow(self.length_penalty).to(scores)


def empty(task: Task, width: int, groups: int = 1) -> dict[str, Tensor]:
    """A pool with no hypothesis in it: tokens [B, W, columns], scores [B, W], done [B, G]."""
    if width // groups > task.vocab:
        raise ZooError(
            f"a beam of {width // groups} hypotheses is wider than the vocabulary of {task.vocab}"
        )
    device = task.ends.device
    return {
        "tokens": torch.full((task.batch, width, task.columns), task.pad, device=device),
        "scores": torch.full((task.batch, width), -math.inf, device=device),
        "done": torch.zeros(task.batch, groups, dtype=torch.bool, device=device),
    }


def best(ranks: Tensor, totals: Tensor, k: int) -> tuple[Tensor, Selection]:
    """The k continuations that rank highest, of ranks and totals [B, w, V]; best first."""
    V = totals.shape[-1]
    rank, flat = ranks.flatten(1).topk(k)
    return rank, Selection(flat % V, flat // V, totals.flatten(1).gather(1, flat))


@dataclass(frozen=True)
class Step:
    """What came of a step.

    Shapes:
        chosen: the w that go on; pool: the best that ended so far; uses [B, k], how often each of
        the tokens [B, k] was taken, to go on or to end with.
    """

    chosen: Selection
    pool: Mapping[str, Tensor]
    tokens: Tensor
    uses: Tensor


def grown(ranks: Tensor, totals: Tensor, search: Search, rules: Rules) -> Step:
    """One step: the best that go on, and the pool with the best that ended.

    Enough candidates are looked at that w go on even if all the others end; only the first w of
    them may enter the pool.

    Shapes:
        ranks [B, w, V], what continuations are chosen by; totals [B, w, V], their scores.
    """
    w, V = ranks.shape[1:]
    task, pool, count = search.task, search.kept, search.count.clamp(min=1)[:, None]
    k = min(max(2, 1 + len(task.ends)) * w, w * V)
    rank, found = best(ranks, totals, k)
    last = count >= task.max_length  # [B, 1]
    ends = task.ended(found.tokens)  # [B, k]

    on = rank.masked_fill(ends, -math.inf).topk(w).indices
    going = found.scores.masked_fill(ends, -math.inf).gather(1, on)
    chosen = Selection(found.tokens.gather(1, on), found.parents.gather(1, on), going)

    over = (ends | last) & (torch.arange(k, device=ends.device) < w)
    ended = rules.ranked(found.scores, count).masked_fill(~over | pool["done"], -math.inf)
    scores, kept = torch.cat([pool["scores"], ended], dim=1).topk(w)
    said = _rows(search.tokens, found.parents)
    said[..., search.at] = found.tokens
    tokens = _rows(torch.cat([pool["tokens"], said], dim=1), kept)

    full = ~scores.isneginf().any(dim=1, keepdim=True)
    hopeful = rules.early_stopping == "never" and rules.length_penalty > 0
    length = torch.full_like(count, task.max_length) if hopeful else count
    hope = rules.ranked(going.amax(dim=1, keepdim=True), length)
    enough = full if rules.early_stopping is True else full & (hope <= scores[:, -1:])
    done = pool["done"] | enough | last | hope.isneginf()
    taken = (over.scatter(1, on, True)) & ~found.scores.isneginf()
    return Step(
        chosen, {"tokens": tokens, "scores": scores, "done": done}, found.tokens, taken.to(ranks)
    )


def drained(search: Search, n_best: int) -> tuple[Tensor, Tensor]:
    """The best of the pool: tokens [B, N, columns], scores [B, N]; places left empty are padded."""
    scores, order = search.kept["scores"].topk(n_best)
    tokens = _rows(search.kept["tokens"], order)
    return tokens.masked_fill(scores.isneginf()[..., None], search.task.pad), scores


def _rows(tokens: Tensor, index: Tensor) -> Tensor:
    """Rows index [B, n] of tokens [B, m, T] -> [B, n, T]."""
    return tokens.gather(1, index[..., None].expand(-1, -1, tokens.shape[-1]))
