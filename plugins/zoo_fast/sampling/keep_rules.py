"""Random samplers as rules that say which tokens they keep, for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


@dataclass(frozen=True)
class KeepRule:
    """Which tokens a sampler keeps, after the logits are divided by a temperature.

    Attributes:
        kind: "all" tokens; those with a "weight" of at least ``bound`` times the largest one; the
            largest ones until their "count" is ``bound``, and those equal to the last; the largest
            ones until their "mass" is ``bound`` of the total.
    """

    kind: Literal["all", "weight", "count", "mass"]
    temperature: float
    bound: float = 0.0


def rule_of(sampler: TopK | TopP | MinP | Temperature, vocab: int) -> KeepRule:
    """Return the rule of a sampler for a vocabulary size."""
    temperature = sampler.temperature
    if isinstance(sampler, TopK) and sampler.k < vocab:
        return KeepRule("count", temperature, sampler.k)
    if isinstance(sampler, TopP) and sampler.p < 1:
        return KeepRule("mass", temperature, sampler.p)
    if isinstance(sampler, MinP):
        return KeepRule("weight", temperature, sampler.p)
    return KeepRule("all", temperature)
