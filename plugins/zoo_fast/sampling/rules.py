"""Random samplers as rules that keep tokens, for the kernels that sample from logits on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from zoo.generation.search import NextTokens
from zoo.plugin import SearchState
from zoo_fast.device.triton_support import why_not_triton
from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


@dataclass(frozen=True)
class Rule:
    """Which tokens a sampler keeps, after the logits are divided by a temperature.

    Attributes:
        kind: "all" tokens; those with a "weight" of at least ``bound`` times the largest one; the
            largest ones until their "count" is ``bound``, and those equal to the last; the largest
            ones until their "mass" is ``bound`` of the total.
    """

    kind: Literal["all", "weight", "count", "mass"]
    temperature: float
    bound: float = 0.0


def rule_of(sampler: TopK | TopP | MinP | Temperature, vocab: int) -> Rule:
    """Return the rule of a sampler for a vocabulary size."""
    temperature = sampler.temperature
    if isinstance(sampler, TopK) and sampler.k < vocab:
        return Rule("count", temperature, sampler.k)
    if isinstance(sampler, TopP) and sampler.p < 1:
        return Rule("mass", temperature, sampler.p)
    if isinstance(sampler, MinP):
        return Rule("weight", temperature, sampler.p)
    return Rule("all", temperature)


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
