"""Cross-entropy objectives, mean squared error and REINFORCE."""

from collections.abc import Sequence

from zoo.plugin import Objective, hookimpl
from zoo_objectives.binary_cross_entropy import BinaryCrossEntropy
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_objectives.mean_squared_error import MeanSquaredError
from zoo_objectives.reinforce import Reinforce


@hookimpl
def zoo_components() -> Sequence[type[Objective]]:
    return [CrossEntropy, BinaryCrossEntropy, MeanSquaredError, Reinforce]
