"""Cross-entropy objectives, mean squared error and REINFORCE."""

from collections.abc import Sequence

from zoo.plugin import Objective, hookimpl
from zoo_objectives.binary_cross_entropy import BinaryCrossEntropy
from zoo_objectives.contrastive import Contrastive
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_objectives.mean_squared_error import MeanSquaredError
from zoo_objectives.reinforce import Reinforce
from zoo_objectives.sigmoid_contrastive import SigmoidContrastive


@hookimpl
def zoo_components() -> Sequence[type[Objective]]:
    pairs = [Contrastive, SigmoidContrastive]
    return [CrossEntropy, BinaryCrossEntropy, MeanSquaredError, Reinforce, *pairs]
