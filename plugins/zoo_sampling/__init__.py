"""Log-probabilities to tokens."""

from collections.abc import Sequence

from zoo import Sampler, hookimpl
from zoo_sampling.greedy import Greedy


@hookimpl
def zoo_components() -> Sequence[type[Sampler]]:
    return [Greedy]
