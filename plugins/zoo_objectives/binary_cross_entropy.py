"""Binary cross-entropy."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class BinaryCrossEntropy(Objective):
    r"""Mean binary cross-entropy of independent labels, in nats.

    .. math::
        L = -\frac{1}{NV} \sum_{t,v} \big[ y_{tv} \log \sigma(z_{tv})
            + (1 - y_{tv}) \log (1 - \sigma(z_{tv})) \big]

    Paper: Good 1952, section 8 (logarithmic score).

    Shapes:
        logits [B, T, V], targets [B, T, V] in 0 to 1, mask [B, T] -> scalar; 0 if all positions
        are masked.
    """

    name: ClassVar[str] = "binary-cross-entropy"
    paper: ClassVar[str] = "Good 1952, Rational Decisions"

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="multi-label", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        valid = outputs.mask[..., None]
        targets = outputs.targets.to(logits).where(valid, 0.0)
        losses = F.binary_cross_entropy_with_logits(
            logits.where(valid, 0.0), targets, reduction="none"
        )
        total = losses.where(valid, 0.0).sum()
        return total / (outputs.mask.sum() * logits.shape[-1]).clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        total, count = 0.0, 0
        for item, t in outputs.mask.nonzero().tolist():
            for logit, target in zip(
                outputs.logits[item, t], outputs.targets[item, t], strict=True
            ):
                p = logit.double().sigmoid()
                total -= (target * p.log() + (1 - target) * (1 - p).log()).item()
                count += 1
        return total / max(count, 1)

    def examples(self) -> Sequence[Outputs]:
        generator = torch.Generator("cpu").manual_seed(0)
        logits = torch.randn(3, 4, 5, generator=generator, dtype=torch.float64, device="cpu")
        targets = torch.randint(0, 2, (3, 4, 5), generator=generator, device="cpu").double()
        device = torch.empty(0).device
        mask = torch.arange(4) < torch.tensor([4, 1, 2])[:, None]
        return [Outputs(logits.to(device), targets.to(device), mask)]
