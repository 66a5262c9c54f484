"""Prompts of different lengths that are processed together, and prompts that are padded to a length
for which a graph is captured.

The reference loop forces the tokens after the shortest prompt one step at a time. Here all prompts
are processed in one pass, after which each row of the decoder's state has its own position.

Notation: B items, P tokens of the longest prompt, N hypotheses of an item, T tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from zoo.acceleration.binding import bound_accelerations
from zoo.acceleration.conditions import why_not
from zoo.generation.prompts import PromptBatch
from zoo.plugin import Decoder, DecodeRequest, State
from zoo_fast.generation.known_filters import ignores_repeats
from zoo_fast.generation.known_samplers import known_sampler
from zoo_fast.generation.lengths import prompt_length, step_limit

MAX_TOKENS = 2048
"""Tokens of padded prompts; the device takes longer for more of them than launches take."""


class ProcessesPadded(ABC):
    """An acceleration of a decoder whose steps process rows at different positions."""

    @abstractmethod
    def process_padded(
        self, target: Any, tokens: Tensor, lengths: Tensor, state: State, *, ragged: bool
    ) -> tuple[Tensor, State]:
        """Process prompts after `Decoder.start`; the steps after it ignore the padding.

        Args:
            ragged: whether the lengths may differ.

        Shapes:
            tokens [B, n], padded on the right; lengths [B] -> the logits [B, 1, V] of the token
            after each prompt, and the state.
        """


def find_padded(decoder: Decoder, device: torch.device) -> ProcessesPadded | None:
    """Return the acceleration of a decoder that processes padded prompts, None without one."""
    for each in bound_accelerations(decoder):
        if isinstance(each, ProcessesPadded) and why_not(each, decoder, device) is None:
            return each
    return None


@dataclass(frozen=True)
class PaddedPrompts:
    """Prompts for `ProcessesPadded` and for the search.

    In the search all prompts end in the same column, so that the first tokens after them are
    selected in the same step. The first token of a shorter prompt is repeated before it.

    Attributes:
        plain: the prompts of the reference loop.
        aligned: the prompts of the search, none of which has forced tokens.
        tokens: [B, n], padded on the right with the last token, since it is a valid one.
        lengths: [B].
        process: computes the state after the prompts.
    """

    plain: PromptBatch
    aligned: PromptBatch
    tokens: Tensor
    lengths: Tensor
    process: ProcessesPadded

    @property
    def ragged(self) -> bool:
        """Whether the prompts differ in length."""
        return self.plain.suffix.shape[1] > 0

    def align_left(self, tokens: Tensor) -> Tensor:
        """Return tokens [B, N, T] of the search as the reference loop does: from column 0 on."""
        B, N, T = tokens.shape
        index = torch.arange(T, device=tokens.device) + self._missing()[:, None]  # [B, T]
        found = tokens.gather(2, index.clamp(max=T - 1)[:, None].expand(B, N, T))
        return found.masked_fill((index >= T)[:, None], self.plain.pad)

    def delay(self, columns: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield the tokens [B, 1] of each step as the reference loop does: the first token of an
        item after as many steps as its prompt has forced tokens."""
        delays = self.plain.forced_lengths.cpu()
        B, items = len(delays), torch.arange(len(delays))
        delayed = torch.full((B, self.plain.steps), self.plain.pad)
        ends = torch.tensor(self.plain.eos_ids, dtype=torch.long)
        last = delays.clone()  # the last column of each item
        ended = torch.zeros(B, dtype=torch.bool)
        step = -1
        for step, column in enumerate(columns):
            delayed[items, delays + step] = column[:, 0]
            last = torch.where(ended, last, delays + step)
            ended |= torch.isin(column[:, 0], ends)
            yield delayed[:, step, None].clone()
        for further in range(step + 1, int(last.max()) + 1):
            yield delayed[:, further, None].clone()

    def _missing(self) -> Tensor:
        """Return the number of tokens [B] by which each prompt is shorter than the longest."""
        return self.aligned.prefix.shape[1] - self.lengths


def pad_prompts(
    decoder: Decoder, prompts: PromptBatch, request: DecodeRequest, *, share_graphs: bool
) -> PaddedPrompts | None:
    """Return padded prompts, None if prompts are not padded.

    Args:
        share_graphs: whether they are padded to a length for which graphs are captured.
    """
    P, ragged = prompts.prefix.shape[1] + prompts.suffix.shape[1], prompts.suffix.shape[1] > 0
    padded = _padded_length(decoder, prompts, P) if share_graphs else P
    if not _processes_together(decoder, prompts, request) if ragged else padded == P:
        return None
    process = find_padded(decoder, prompts.prefix.device)
    if process is None:
        return None
    if ragged:
        prompt = torch.cat([prompts.prefix, prompts.suffix], dim=1)  # [B, P]
        lengths = prompts.prefix.shape[1] + prompts.forced_lengths
        aligned = _align(prompts, prompt, lengths)
    else:
        prompt, aligned = prompts.prefix, prompts
        lengths = torch.full_like(prompts.forced_lengths, P)
    column = torch.arange(padded, device=prompt.device)
    tokens = prompt.gather(1, torch.minimum(column, lengths[:, None] - 1))
    return PaddedPrompts(prompts, aligned, tokens, lengths, process)


def _padded_length(decoder: Decoder, prompts: PromptBatch, P: int) -> int:
    """Return the number of tokens to which all prompts are padded."""
    length, limit = prompt_length(P), step_limit(decoder)
    if P == 1 or limit is None:
        return P
    limit = decoder.max_steps(P, limit)
    return length if length <= limit and length * len(prompts.prefix) <= MAX_TOKENS else P


def _processes_together(decoder: Decoder, prompts: PromptBatch, request: DecodeRequest) -> bool:
    """Whether the outputs of prompts of different lengths are those of the reference loop.

    There random samplers draw numbers in forced steps too, filters get the tokens of each item
    without padding, and the decoder restarts when its texts, which are of the same length, pass
    `Decoder.max_steps`.
    """
    steps = prompts.total_length - 1
    if decoder.max_steps(prompts.prefix.shape[1], steps) < steps:
        return False
    is_random = known_sampler(request.sampler).keeps_items
    return not is_random and all(ignores_repeats(each) for each in request.filters)


def _align(prompts: PromptBatch, prompt: Tensor, lengths: Tensor) -> PromptBatch:
    """Return the prompts [B, P] so that all end in the last column."""
    P = prompt.shape[1]
    column, length = torch.arange(P, device=prompt.device), lengths[:, None]
    return replace(
        prompts,
        prefix=prompt.gather(1, (column - (P - length)).clamp(min=0)),
        suffix=prompt[:, P:],
        forced_lengths=torch.zeros_like(prompts.forced_lengths),
    )
