"""Cross-entropy with optional label smoothing and weights of classes."""

from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Outputs
from zoo.plugin import InvalidParameter, Objective, OutputRequirement, full_precision
from zoo_objectives.class_weights import ClassWeights, balanced, by_name, check_weights


class CrossEntropy(Objective):
    r"""Mean cross-entropy of the targets, in nats, with optional label smoothing.

    .. math::
        L = -\frac{1}{\sum_t w_{y_t}} \sum_t \Big[ (1 - \epsilon) w_{y_t} \log p_t(y_t)
            + \frac{\epsilon}{V} \sum_v w_v \log p_t(v) \Big]

    Without weights of classes all w are 1, and L is the mean over the N targets.

    Paper: Szegedy et al. 2016, section 7 (label smoothing).

    Args:
        smoothing: probability mass, epsilon, spread evenly over the vocabulary.
        class_weights: weight of each class, w: a list in the order of the IDs, weights by name of
            the class (1 for the others), or "balanced": N / (C n_c) for a class with n_c of N
            targets of the training data, C being the number of classes that occur.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T] -> scalar; 0 if all positions
        are masked.
    """

    name: ClassVar[str] = "cross-entropy"
    paper: ClassVar[str] = (
        "Szegedy et al. 2016, Rethinking the Inception Architecture, arXiv:1512.00567"
    )
    weights: Tensor | None

    def __init__(
        self,
        *,
        smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        class_weights: ClassWeights | None = None,
    ) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.class_weights = class_weights
        weights = None
        if isinstance(class_weights, dict):
            check_weights(class_weights.values())
        elif isinstance(class_weights, list):
            check_weights(class_weights)
            weights = torch.tensor(class_weights)
        self.register_buffer("weights", weights, persistent=False)  # part of the spec

    def fit(self, targets: Any) -> dict[str, Any]:
        given = self.class_weights
        if given is None or isinstance(given, list):
            return {}
        if isinstance(given, dict):
            return {"class_weights": by_name(targets.names, given)}
        return {"class_weights": balanced(targets.names, targets.ids())}

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        losses = F.cross_entropy(
            logits.flatten(0, 1),
            outputs.targets.where(outputs.mask, 0).flatten(),
            weight=self._weights(logits),
            label_smoothing=self.smoothing,
            reduction="none",
        )
        total = losses.where(outputs.mask.flatten(), 0.0).sum()
        if self.class_weights is None:
            return total / outputs.mask.sum().clamp(min=1)
        weight = self.weight(outputs)
        return total / torch.where(weight > 0, weight, 1.0)

    def weight(self, outputs: Outputs) -> Tensor:
        weights = self._weights(full_precision(outputs.logits))
        if weights is None:
            return super().weight(outputs)
        return weights[outputs.targets.where(outputs.mask, 0)].where(outputs.mask, 0.0).sum()

    def _weights(self, logits: Tensor) -> Tensor | None:
        """Return the weights of the classes in the dtype of the logits; None if all are 1."""
        if self.class_weights is None:
            return None
        if self.weights is None:
            raise InvalidParameter(
                "class_weights",
                f"class_weights is {self.class_weights!r}, which 'zoo train' replaces by a weight "
                "for each class ID; pass a list of weights",
            )
        if len(self.weights) != logits.shape[-1]:
            raise InvalidParameter(
                "class_weights",
                f"class_weights has {len(self.weights)} weights, but the model has "
                f"{logits.shape[-1]} classes",
            )
        return self.weights.to(logits)

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0.0
        for item in range(outputs.targets.shape[0]):
            for t in range(outputs.targets.shape[1]):
                if not outputs.mask[item, t]:
                    continue
                logprobs = outputs.logits[item, t].double().log_softmax(dim=-1)
                weights = torch.ones_like(logprobs) if self.weights is None else self.weights
                target = outputs.targets[item, t]
                total -= (1 - self.smoothing) * (weights[target] * logprobs[target]).item()
                total -= self.smoothing * (weights * logprobs).mean().item()
                count += weights[target].item()
        return total / (count or 1)
