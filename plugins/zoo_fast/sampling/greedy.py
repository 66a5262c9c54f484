"""Greedy decoding from logits."""

import math

import torch
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState, Selection
from zoo_fast.device.triton_support import why_not_triton
from zoo_sampling.greedy import Greedy


def step_from_logits(
    sampler: Greedy, logits: Tensor, search: SearchState, generator: torch.Generator | None
) -> NextTokens | None:
    """Compute the step of `Greedy`, as `KnownSampler.step`."""
    if why_not_triton(logits) is not None:
        return _step_on_cpu(logits.float(), search) if logits.device.type == "cpu" else None
    from zoo_fast.sampling.kernels.candidates import greedy_step

    return greedy_step(logits, search)


def _step_on_cpu(logits: Tensor, search: SearchState) -> NextTokens:
    """Compute the log-probability of the selected token only."""
    task, finished = search.task, search.finished
    maximum, tokens = logits.max(dim=-1)  # NaN is the maximum
    nan_or_inf = ~(maximum < math.inf)
    total = (logits - maximum[..., None]).exp_().sum(dim=-1)
    best = maximum
    if not task.selects_pad and bool((tokens == task.pad).any()):
        is_pad = torch.arange(task.vocab, device=logits.device) == task.pad
        best, tokens = logits.masked_fill(is_pad, -math.inf).max(dim=-1)
    # The difference is NaN in a row of -inf.
    gain = (best - maximum - total.log()).nan_to_num(nan=-math.inf, neginf=-math.inf)
    tokens = tokens.masked_fill(finished, task.pad)
    scores = search.scores + gain.masked_fill(finished, 0.0)
    selection = Selection(tokens, torch.zeros_like(tokens), scores)
    return NextTokens(selection, search.sampler_state, nan_or_inf)
