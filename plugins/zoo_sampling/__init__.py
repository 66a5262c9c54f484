"""Samplers and filters."""

from collections.abc import Sequence

from zoo.plugin import Filter, Sampler, hookimpl
from zoo_sampling.allowed_tokens import AllowedTokens
from zoo_sampling.beam import Beam
from zoo_sampling.combined import CombinedSampler
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.forced_end import ForcedEnd
from zoo_sampling.forced_tokens import ForcedTokens
from zoo_sampling.greedy import Greedy
from zoo_sampling.min_p import MinP
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.suppressed_tokens import SuppressedTokens
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical


@hookimpl
def zoo_components() -> Sequence[type[Sampler] | type[Filter]]:
    return [
        Greedy,
        Beam,
        DiverseBeam,
        Temperature,
        TopK,
        TopP,
        MinP,
        Typical,
        CombinedSampler,
        RepetitionPenalty,
        NoRepeatNgram,
        ForcedTokens,
        ForcedEnd,
        SuppressedTokens,
        AllowedTokens,
    ]
