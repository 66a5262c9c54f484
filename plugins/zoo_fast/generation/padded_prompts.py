"""Prompts of different lengths that are processed together, padded to the longest one.

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


class ProcessesPadded(ABC):
    """An acceleration of a decoder whose steps process rows at different positions."""

    @abstractmethod
    def process_padded(
        self, target: Any, tokens: Tensor, lengths: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Process prompts after `Decoder.start`; the steps after it ignore the padding.

        Shapes:
            tokens [B, P], padded on the right; lengths [B] -> the logits [B, 1, V] of the token
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
        tokens: [B, P], padded on the right with the last token, since it is a valid one.
        lengths: [B].
        process: computes the state after the prompts.
    """

    plain: PromptBatch
    aligned: PromptBatch
    tokens: Tensor
    lengths: Tensor
    process: ProcessesPadded

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
        return self.tokens.shape[1] - self.lengths


def pad_prompts(
    decoder: Decoder, prompts: PromptBatch, request: DecodeRequest
) -> PaddedPrompts | None:
    """Return padded prompts, None if they have the same length or the outputs could differ.

    In the reference loop random samplers draw numbers in forced steps too, and filters get the
    tokens of each item without padding.
    """
    if not prompts.suffix.shape[1] or known_sampler(request.sampler).keeps_items:
        return None
    if not all(ignores_repeats(each) for each in request.filters):
        return None
    process = find_padded(decoder, prompts.prefix.device)
    if process is None:
        return None
    prompt = torch.cat([prompts.prefix, prompts.suffix], dim=1)  # [B, P]
    P = prompt.shape[1]
    lengths = prompts.prefix.shape[1] + prompts.forced_lengths
    column, length = torch.arange(P, device=prompt.device), lengths[:, None]
    aligned = replace(
        prompts,
        prefix=prompt.gather(1, (column - (P - length)).clamp(min=0)),
        suffix=prompt[:, P:],
        forced_lengths=torch.zeros_like(prompts.forced_lengths),
    )
    tokens = prompt.gather(1, torch.minimum(column, length - 1))
    return PaddedPrompts(prompts, aligned, tokens, lengths, process)
