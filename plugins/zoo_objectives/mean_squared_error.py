"""Mean squared error."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class MeanSquaredError(Objective):
    r"""Mean squared error of predicted numbers.

    .. math:: L = \frac{1}{NV} \sum_{t,v} (z_{tv} - y_{tv})^2

    Paper: Legendre 1805, the method of least squares.

    Shapes:
        logits [B, T, V], targets [B, T, V], mask [B, T] -> scalar; 0 if all positions are masked.
    """

    name: ClassVar[str] = "mean-squared-error"
    paper: ClassVar[str] = "Legendre 1805, Nouvelles méthodes pour la détermination des orbites"

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="value", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        errors = (logits - outputs.targets.to(logits)).square()
        total = errors.where(outputs.mask[..., None], 0.0).sum()
        return total / (outputs.mask.sum() * logits.shape[-1]).clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        errors = [
            (outputs.logits[item, t, v] - outputs.targets[item, t, v]).item() ** 2
            for item, t in outputs.mask.nonzero().tolist()
            for v in range(outputs.logits.shape[-1])
        ]
        return sum(errors) / max(len(errors), 1)

    def examples(self) -> Sequence[Outputs]:
        generator = torch.Generator("cpu").manual_seed(0)
        logits, targets = (
            torch.randn(3, 4, 5, generator=generator, dtype=torch.float64, device="cpu")
            for _ in range(2)
        )
        device = torch.empty(0).device
        mask = torch.arange(4) < torch.tensor([4, 1, 2])[:, None]
        return [Outputs(logits.to(device), targets.to(device), mask)]
