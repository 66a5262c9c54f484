"""Greedy decoding."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Sampler, SearchState, Selection, why_not_triton


class Greedy(Sampler):
    r"""Greedy decoding: select the most probable next token, the first one of ties.

    .. math:: y_t = \arg\max_v \log p(v \mid y_{<t}, x)

    Paper: Germann et al. 2001, which compares greedy with optimal decoding.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "greedy"
    paper: ClassVar[str] = (
        "Germann et al. 2001, Fast Decoding and Optimal Decoding for Machine Translation"
    )

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        best, tokens = logprobs.max(dim=-1)
        return Selection(tokens, torch.zeros_like(tokens), scores + best)

    def advance_logits(
        self, logits: Tensor, search: SearchState
    ) -> tuple[Selection, Mapping[str, Tensor], Tensor] | None:
        if why_not_triton(logits) is not None:
            on_cpu = logits.device.type == "cpu" and not torch.compiler.is_compiling()
            return _step_on_cpu(logits.float(), search) if on_cpu else None
        from zoo_sampling.kernels.candidates import greedy_step

        selection, invalid = greedy_step(logits, search)
        return selection, search.sampler_state, invalid


def _step_on_cpu(
    logits: Tensor, search: SearchState
) -> tuple[Selection, Mapping[str, Tensor], Tensor]:
    """Compute the log-probability of the selected token only."""
    task, finished = search.task, search.finished
    maximum, tokens = logits.max(dim=-1)  # NaN is the maximum
    nan_or_inf = ~(maximum < math.inf)
    total = (logits - maximum[..., None]).exp_().sum(dim=-1)
    best = maximum
    if not task.pad_ends and bool((tokens == task.pad).any()):
        is_pad = torch.arange(task.vocab) == task.pad
        best, tokens = logits.masked_fill(is_pad, -math.inf).max(dim=-1)
    # The difference is NaN in a row of -inf.
    gain = (best - maximum - total.log()).nan_to_num(nan=-math.inf, neginf=-math.inf)
    tokens = tokens.masked_fill(finished, task.pad)
    scores = search.scores + gain.masked_fill(finished, 0.0)
    return Selection(tokens, torch.zeros_like(tokens), scores), search.sampler_state, nan_or_inf
