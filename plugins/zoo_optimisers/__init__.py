"""Optimisers and learning rate schedules."""

from collections.abc import Sequence

from zoo.plugin import Optimiser, Schedule, hookimpl
from zoo_optimisers.adadelta import Adadelta
from zoo_optimisers.adam import Adam
from zoo_optimisers.adamw import AdamW
from zoo_optimisers.constant import Constant
from zoo_optimisers.cosine import Cosine
from zoo_optimisers.inverse_sqrt import InverseSqrt
from zoo_optimisers.linear import Linear
from zoo_optimisers.piecewise import Piecewise
from zoo_optimisers.plateau import Plateau
from zoo_optimisers.rmsprop import RmsProp
from zoo_optimisers.sgd import Sgd
from zoo_optimisers.step import Step


@hookimpl
def zoo_components() -> Sequence[type[Optimiser] | type[Schedule]]:
    return [
        AdamW,
        Adam,
        Sgd,
        Adadelta,
        RmsProp,
        InverseSqrt,
        Linear,
        Cosine,
        Constant,
        Step,
        Piecewise,
        Plateau,
    ]
