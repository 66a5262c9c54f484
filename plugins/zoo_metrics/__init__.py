"""How good predictions are."""

from collections.abc import Sequence

from zoo import Metric, hookimpl
from zoo_metrics.accuracy import Accuracy
from zoo_metrics.bleu import BLEU
from zoo_metrics.sequence_accuracy import SequenceAccuracy


@hookimpl
def zoo_components() -> Sequence[type[Metric]]:
    return [Accuracy, SequenceAccuracy, BLEU]
