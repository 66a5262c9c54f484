"""Accelerations of ctc."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.ctc.likelihoods import CtcScaled, CtcTriton
from zoo_fast.ctc.searches import CtcBeamArrays, CtcBeamGraphed

ACCELERATIONS: Sequence[type[Acceleration]] = (
    CtcTriton,
    CtcScaled,
    CtcBeamGraphed,
    CtcBeamArrays,
)
