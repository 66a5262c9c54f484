"""Symmetric contrastive loss."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import Outputs
from zoo.plugin import Objective, OutputRequirement, full_precision


class Contrastive(Objective):
    r"""Cross-entropy of pairs in both directions: of the target among all targets of the batch, and
    of the source among all sources.

    .. math::
        L = -\frac{1}{2N} \sum_i \Big[ \log \frac{e^{z_{i y_i}}}{\sum_j e^{z_{ij}}}
            + \log \frac{e^{z_{i y_i}}}{\sum_j e^{z_{j y_i}}} \Big]

    Paper: Radford et al. 2021, figure 3.

    Shapes:
        logits [B, T, C], of each source and all C targets of the batch, targets [B, T], mask [B, T]
        -> scalar; 0 if all positions are masked.
    """

    name: ClassVar[str] = "contrastive"
    paper: ClassVar[str] = (
        "Radford et al. 2021, Learning Transferable Visual Models From Natural Language "
        "Supervision, arXiv:2103.00020"
    )
    mergeable = False

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", logits="candidate", uses=())

    def forward(self, outputs: Outputs) -> Tensor:
        logits = full_precision(outputs.logits).flatten(0, 1)  # [N, C]
        valid = outputs.mask.flatten()
        targets = outputs.targets.flatten().where(valid, 0)
        logits = logits.masked_fill(~valid[:, None], torch.finfo(logits.dtype).min)
        columns = logits.logsumexp(dim=0)  # [C], over the sources
        own = logits.gather(1, targets[:, None])[:, 0]
        losses = (F.cross_entropy(logits, targets, reduction="none") + columns[targets] - own) / 2
        return losses.where(valid, 0.0).sum() / valid.sum().clamp(min=1)

    def reference(self, outputs: Outputs) -> float:
        rows = outputs.logits[outputs.mask].double().tolist()
        targets = outputs.targets[outputs.mask].tolist()
        total = 0.0
        for row, target in zip(rows, targets, strict=True):
            among_targets = torch.tensor(row).log_softmax(dim=0)[target]
            column = torch.tensor([other[target] for other in rows])
            total -= (among_targets + row[target] - column.logsumexp(dim=0)).item() / 2
        return total / max(len(rows), 1)

    def examples(self) -> Sequence[Outputs]:
        return pair_examples()


def pair_examples() -> list[Outputs]:
    """Return outputs of batches of pairs in float64, one with a masked pair."""
    generator = torch.Generator("cpu").manual_seed(0)
    device = torch.empty(0).device
    examples = []
    for last in (True, False):
        logits = torch.randn(4, 1, 5, generator=generator, dtype=torch.float64, device="cpu")
        mask = torch.tensor([[True], [True], [True], [last]])
        examples.append(Outputs(logits.to(device), torch.arange(4)[:, None], mask))
    return examples
