"""Cross-entropy that is computed from the output layer."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from zoo import Outputs
from zoo.plugin import Acceleration, Declined
from zoo_fast.objectives.linear_cross_entropy import linear_cross_entropy, saves_memory
from zoo_fast.training.deferred_logits import DeferredLogits, uses_deferred_logits
from zoo_objectives.cross_entropy import CrossEntropy


@uses_deferred_logits.register
def _(objective: CrossEntropy) -> bool:
    return objective.class_weights is None


class ChunkedCrossEntropy(Acceleration):
    """Computes logits of a large vocabulary and their gradient in chunks, which are not kept."""

    name: ClassVar[str] = "chunked-cross-entropy"
    serves: ClassVar[type[Any]] = CrossEntropy
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def forward(self, target: CrossEntropy, outputs: Outputs) -> Tensor | Declined:
        logits = outputs.logits
        if target.class_weights is not None:
            return Declined("the classes have weights")
        if not isinstance(logits, DeferredLogits):
            return Declined("the logits are not deferred")
        if not saves_memory(logits):
            return Declined("the vocabulary is small")
        return linear_cross_entropy(
            logits, outputs.targets, outputs.mask, smoothing=target.smoothing
        )
