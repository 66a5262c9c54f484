"""Sampler: log-probabilities to tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoo.interfaces.component import Component
from zoo.interfaces.data import GenerationOutput, Selection


@dataclass(frozen=True)
class SearchConfig:
    """What is to be searched for: so many items, over that vocabulary, until then.

    Shapes:
        ends [E], the tokens that end a hypothesis; columns: room for the prompt and all that may
        follow; max_length: tokens an item may generate, its end token included.
    """

    batch: int
    vocab: int
    total_length: int
    max_length: int
    pad: int
    eos_ids: Tensor

    def is_eos(self, tokens: Tensor) -> Tensor:
        """Which tokens [...] are end tokens."""
        return (tokens[..., None] == self.eos_ids).any(dim=-1)


@dataclass(frozen=True)
class SearchState:
    """Where a search stands when its next token is to be chosen.

    Shapes:
        tokens [B, W, columns], the prompt first, filled up to column ``at``; scores and finished
        [B, W]; count [B], tokens generated with the coming one; kept: what the sampler keeps from
        step to step, each tensor with the batch first.
    """

    task: SearchConfig
    tokens: Tensor
    scores: Tensor
    finished: Tensor
    num_generated: Tensor
    cur_len: int
    sampler_state: Mapping[str, Tensor]


class Sampler(Component):
    """Chooses how generation goes on, on the device, without asking the host.

    A sampler that draws states its ``distribution``; one that chooses otherwise has a ``select``
    of its own. One that ranks what has ended, as a beam does, keeps tensors between the steps
    (``begin``, ``advance``, ``done``, ``finish``). The decoding loop keeps finished hypotheses
    finished: it offers them one token only.

    Laws:
        seeded draws repeat; draws follow the stated distribution; finished hypotheses stay
        finished; an impossible token is never chosen, a certain one always.

    Attributes:
        width: how many hypotheses are alive for each item.
        groups: into how many equal groups they fall; the first of each begins the search.
    """

    kind: ClassVar[str] = "sampler"
    width: int = 1
    groups: int = 1

    def distribution(self, logprobs: Tensor) -> Tensor:
        """What each draw follows: logprobs [..., V] -> probabilities [..., V]."""
        rows = logprobs.reshape(-1, 1, logprobs.shape[-1])
        chosen = self.select(rows, torch.zeros_like(rows[..., 0]))
        certain = torch.nn.functional.one_hot(chosen.tokens[:, 0], logprobs.shape[-1])
        return certain.view(logprobs.shape).to(logprobs)

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        """logprobs [B, W, V] of each hypothesis's next token, scores [B, W] so far."""
        if type(self).distribution is Sampler.distribution:
            raise NotImplementedError(f"{type(self).__name__} has neither distribution nor select")
        p = self.distribution(logprobs)
        # The first of exponential clocks with rates p rings; unlike torch.multinomial, no sync.
        clocks = torch.empty_like(p).exponential_(generator=generator)
        tokens = (p / clocks.clamp_(min=torch.finfo(p.dtype).tiny)).argmax(dim=-1)  # [B, W]
        gained = logprobs.gather(-1, tokens[..., None])[..., 0]
        parents = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return Selection(tokens, parents, scores + gained)

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        """What is kept before the first step; ZooError if the task cannot be searched."""
        return {}

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        """The choice for this step, and what is kept after it."""
        return self.select(logprobs, search.scores, generator), search.sampler_state

    def done(self, search: SearchState) -> Tensor:
        """Which items [B] need no further step."""
        return (search.finished | search.scores.isneginf()).all(dim=1)

    def finish(self, search: SearchState) -> tuple[Tensor, Tensor]:
        """tokens [B, N, columns] and scores [B, N] of what was found, best first."""
        return search.tokens, search.scores


class FrameSampler(Sampler):
    """Reads labels off all frames of an item at once, where nothing said depends on a choice.

    The decoding loop has no use for it: a model that gives logits for frames, as CTC does, hands
    them over whole.

    Laws:
        a certain path is read off; padding frames change nothing; labels are neither blank nor
        padding; scores come best first, none above the log-probability of its labels.
    """

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        """logprobs [B, T, V] of each frame, mask [B, T] with the real frames first -> N labellings.

        tokens [B, N, U] end where their padding begins; an item without frames has none, and the
        score 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no read")
