"""Properties of filters: `ignores_repeats` and `is_capturable`."""

from zoo_sampling.forced_end import ForcedEnd
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.suppressed_tokens import SuppressedTokens


def penalty_ignores_repeats(filter: RepetitionPenalty) -> bool:
    return True  # it depends on the set of the tokens


def end_ignores_repeats(filter: ForcedEnd) -> bool:
    return True  # it depends on the number of generated tokens


def suppression_ignores_repeats(filter: SuppressedTokens) -> bool:
    return filter.start == 1 and filter.stop is None  # at all positions
