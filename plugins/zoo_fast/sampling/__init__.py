"""Accelerations of sampling."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.generation.known_filters import ignores_repeats, is_capturable
from zoo_fast.generation.known_samplers import KnownSampler, register_sampler
from zoo_fast.sampling import beam, greedy, random_step
from zoo_fast.sampling.combined import CombinedCandidates
from zoo_fast.sampling.filters import (
    end_ignores_repeats,
    penalty_ignores_repeats,
    suppression_ignores_repeats,
)
from zoo_fast.sampling.min_p import MinPCandidates
from zoo_fast.sampling.top_k import TopKCandidates
from zoo_fast.sampling.top_p import TopPCandidates
from zoo_sampling.allowed_tokens import AllowedTokens
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.forced_end import ForcedEnd
from zoo_sampling.greedy import Greedy
from zoo_sampling.min_p import MinP
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.suppressed_tokens import SuppressedTokens
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP

register_sampler(Greedy, KnownSampler(greedy.step_from_logits, keeps_items=False))
register_sampler(Beam, KnownSampler(beam.step_from_logits, keeps_items=False))
register_sampler(DiverseBeam, KnownSampler(keeps_items=False))
for sampler in (MinP, Temperature, TopK, TopP):
    register_sampler(sampler, KnownSampler(random_step.step_from_logits))
ignores_repeats.register(RepetitionPenalty)(penalty_ignores_repeats)
is_capturable.register(RepetitionPenalty)(penalty_ignores_repeats)
ignores_repeats.register(ForcedEnd)(end_ignores_repeats)
ignores_repeats.register(SuppressedTokens)(suppression_ignores_repeats)
ignores_repeats.register(AllowedTokens)(suppression_ignores_repeats)

ACCELERATIONS: Sequence[type[Acceleration]] = (
    TopKCandidates,
    TopPCandidates,
    MinPCandidates,
    CombinedCandidates,
)
