"""Supporting facts: the right answer, for the right reason."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo import Objective, Outputs


class SupportingFacts(Objective):
    r"""Cross-entropy of the answer, and of the gates that should open to the facts behind it.

    .. math:: L = -\log p(a) - \frac{\lambda}{N} \sum_{t,i} \big[ y^i_t \log g^i_t
        + (1 - y^i_t) \log (1 - g^i_t) \big]

    Paper: Kumar et al. 2016, section 2.5. Where nobody says which facts matter, the answer alone.

    Args:
        weight: of the gates, lambda.

    Shapes:
        logits [B, T, V], targets [B, T], mask [B, T]; parts "gates" with logits [B, S, E] of E
        readings, targets [B, S, E] of 0 and 1, mask [B, S] -> scalar; 0 where nothing counts.
    """

    name: ClassVar[str] = "supporting-facts"
    paper: ClassVar[str] = (
        "Kumar et al. 2016, Ask Me Anything: Dynamic Memory Networks, arXiv:1506.07285"
    )

    def __init__(self, *, weight: Annotated[float, Field(ge=0)] = 1.0) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, outputs: Outputs) -> Tensor:
        logits, mask = _exact(outputs.logits), outputs.mask
        targets = outputs.targets.where(mask, 0)
        surprise = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        loss = surprise.where(mask, 0.0).sum() / mask.sum().clamp(min=1)
        gates = outputs.parts.get("gates")
        if gates is None:
            return loss
        opened, told = _exact(gates.logits), gates.mask[..., None]
        wanted = gates.targets.to(opened).where(told, 0.0)
        wrong = F.binary_cross_entropy_with_logits(
            opened.where(told, 0.0), wanted, reduction="none"
        ).where(told, 0.0)
        return loss + self.weight * wrong.sum() / (told.sum() * opened.shape[-1]).clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        answers = [
            -outputs.logits[b, t].double().log_softmax(dim=-1)[outputs.targets[b, t]].item()
            for b, t in outputs.mask.nonzero().tolist()
        ]
        total = float(sum(answers)) / max(len(answers), 1)
        gates = outputs.parts.get("gates")
        if gates is None:
            return total
        wrong: list[float] = []
        for b, s in gates.mask.nonzero().tolist():
            for logit, wanted in zip(gates.logits[b, s], gates.targets[b, s], strict=True):
                sign = 1 if wanted else -1
                wrong.append(-float((sign * logit.double()).sigmoid().log()))
        return total + self.weight * float(sum(wrong)) / max(len(wrong), 1)

    def examples(self) -> Sequence[Outputs]:
        drawn = torch.Generator("cpu").manual_seed(0)
        here = torch.empty(0).device

        def noise(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=drawn, dtype=torch.float64, device="cpu").to(here)

        told = torch.arange(4) < torch.tensor([4, 1, 2])[:, None]
        gates = Outputs(noise(3, 4, 2), (noise(3, 4, 2) > 0).double(), told)
        everyone = torch.tensor([[True], [False], [True]])
        answers = Outputs(noise(3, 1, 5), torch.tensor([[1], [2], [4]]), everyone)
        both = Outputs(answers.logits, answers.targets, everyone, parts={"gates": gates})
        return [both, answers]


def _exact(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
