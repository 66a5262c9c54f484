"""The variational bound of DRAW."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class Variational(Objective):
    r"""Variational bound: reconstruction loss plus KL divergence, in nats per item.

    .. math::
        L = \frac{1}{N} \sum_i \Big[ {-} \sum_p \big( x_{ip} \log \sigma(c_{ip})
            + (1 - x_{ip}) \log (1 - \sigma(c_{ip})) \big) + \sum_t \mathrm{KL}_{it} \Big]

    It bounds the negative log-likelihood in expectation if the model samples its latents, as it
    does in training. In evaluation `draw` uses the means of the latents, so the value is
    deterministic, but not a bound; the program `draw-bound` estimates the bound. N is the number of
    items with at least one valid position.

    Paper: Gregor et al. 2015, equations 9 to 12.

    Shapes:
        logits and targets [B, P, V], targets from 0 to 1, mask [B, P], extras kl [B, steps] ->
        scalar; 0 if all positions are masked.
    """

    name: ClassVar[str] = "variational"
    paper: ClassVar[str] = (
        "Gregor et al. 2015, DRAW: A Recurrent Neural Network For Image Generation, "
        "arXiv:1502.04623"
    )

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="multi-label", extras=("kl",), uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits)
        valid = outputs.mask[..., None]
        losses = F.binary_cross_entropy_with_logits(
            logits.where(valid, 0.0), outputs.targets.to(logits).where(valid, 0.0), reduction="none"
        )
        reconstruction = losses.where(valid, 0.0).flatten(1).sum(dim=1)  # [B]
        bound = reconstruction + outputs.get_extra("kl", self.name).sum(dim=1)
        valid_items = outputs.mask.any(dim=1)
        return bound.where(valid_items, 0.0).sum() / valid_items.sum().clamp(min=1)

    def weight(self, outputs: Outputs) -> Tensor:
        return outputs.mask.any(dim=1).sum()

    def reference(self, outputs: Outputs) -> float:
        total, valid_items = 0.0, 0
        for item in range(outputs.mask.shape[0]):
            if not outputs.mask[item].any():
                continue
            valid_items += 1
            total += sum(outputs.extras["kl"][item].tolist())
            for p in outputs.mask[item].nonzero()[:, 0].tolist():
                for logit, x in zip(outputs.logits[item, p], outputs.targets[item, p], strict=True):
                    prob = logit.double().sigmoid()
                    total -= (x * prob.log() + (1 - x) * (1 - prob).log()).item()
        return total / max(valid_items, 1)

    def examples(self) -> Sequence[Outputs]:
        device = torch.empty(0).device
        generator = torch.Generator("cpu").manual_seed(0)

        def noise(*shape: int) -> Tensor:
            samples = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
            return samples.to(device)

        mask = torch.arange(6) < torch.tensor([6, 2, 0])[:, None]
        batches = []
        for classes in (1, 2):
            logits, targets = noise(3, 6, classes), noise(3, 6, classes).sigmoid()
            batches.append(Outputs(logits, targets, mask, extras={"kl": noise(3, 4).abs()}))
        return batches
