"""Vaswani et al. 2017: attention is all you need."""

from collections.abc import Sequence

from zoo import Scorer, hookimpl
from zoo_transformer.scaled_dot import ScaledDot


@hookimpl
def zoo_components() -> Sequence[type[Scorer]]:
    return [ScaledDot]
