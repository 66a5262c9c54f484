"""Beam search from logits, in one kernel, as `zoo_sampling.beam_pool` describes it."""

import torch
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState
from zoo_fast.device.triton_support import why_not_triton
from zoo_sampling.beam import Beam
from zoo_sampling.beam_pool import num_candidates


def step_from_logits(
    sampler: Beam, logits: Tensor, search: SearchState, generator: torch.Generator | None
) -> NextTokens | None:
    """Compute the step of `Beam`, as `KnownSampler.step`."""
    if why_not_triton(logits) is not None:
        return None
    from zoo_fast.sampling.kernels.candidates import MAX_COUNT, beam_step

    k = num_candidates(search.task, sampler.width)
    return None if k > MAX_COUNT else beam_step(logits, search, k, sampler.config)
