"""Random sampling from logits on a GPU: temperature, top-k, top-p and min-p."""

import torch
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState
from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.sampling.keep_rules import rule_of
from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


def step_from_logits(
    sampler: TopK | TopP | MinP | Temperature,
    logits: Tensor,
    search: SearchState,
    generator: torch.Generator | None,
) -> NextTokens | None:
    """Compute the step of a random sampler on a GPU, as `KnownSampler.step`.

    The random numbers are those of `Sampler.select` on a GPU. On the CPU it samples in another way.
    """
    if not logits.is_cuda or why_not_triton(logits) is not None:
        return None
    from zoo_fast.sampling.kernels.race import race_step

    noise = torch.empty(logits.shape, device=logits.device).exponential_(generator=generator)
    return race_step(logits, noise, search, rule_of(sampler, logits.shape[-1]))
