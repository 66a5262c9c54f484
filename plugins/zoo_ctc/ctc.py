"""Connectionist temporal classification: the loss over all alignments."""

import itertools
import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import Outputs, ZooError
from zoo.plugin import Objective, full_precision
from zoo_ctc.lattice import lattice
from zoo_ctc.likelihood import likelihood

ImpossibleMode = Literal["infinite", "zero", "refuse"]


class Ctc(Objective):
    r"""The surprise at a labelling, whichever way its labels lie along the frames.

    .. math::
        L = -\frac{1}{B} \sum_b \log \sum_{\pi :\, \mathcal{B}(\pi) = y_b} \prod_t p_t(\pi_t)

    where B(π) merges what repeats in a path and then drops its blanks. The sum is the forward
    recursion in log space, its gradient the product of forward and backward variables. Half
    precision is computed in float32. Targets that no path can spell, for they have more labels
    than frames (two alike need a blank between them), give what ``impossible`` says and no
    gradient. So does a label that is the blank or no symbol, where asking the host would make a
    device wait; on the CPU it is refused.

    Paper: Graves et al. 2006, equations 6 to 8 and 14 to 16.

    Args:
        blank: the symbol that stands for no label.
        per_target: divide the surprise at each item by the number of its labels.
        impossible: the loss of an item without a path: infinite, or zero as if it were not there;
            or refuse it by name, for which a device is waited for (compiled, it is infinite).

    Shapes:
        logits [B, T, V], mask [B, T] over frames, targets [B, U], target_mask [B, U] with the
        real labels first -> scalar, the mean over items; 0 where there is none.
    """

    name: ClassVar[str] = "ctc"
    paper: ClassVar[str] = (
        "Graves et al. 2006, Connectionist Temporal Classification: Labelling Unsegmented "
        "Sequence Data with Recurrent Neural Networks"
    )

    def __init__(
        self,
        *,
        blank: Annotated[int, Field(ge=0)] = 0,
        per_target: bool = False,
        impossible: ImpossibleMode = "infinite",
    ) -> None:
        super().__init__()
        self.blank = blank
        self.per_target = per_target
        self.impossible = impossible

    def forward(self, outputs: Outputs) -> Tensor:
        target_mask = _require_target_mask(outputs)
        logits = full_precision(outputs.logits)
        ways = lattice(outputs.targets, target_mask, blank=self.blank, vocab=logits.shape[-1])
        losses = -likelihood(logits.log_softmax(dim=-1), outputs.mask, ways)  # [B]
        if self.impossible == "refuse":
            _raise_if_impossible(losses, outputs.mask, target_mask)
        if self.impossible == "zero":
            losses = torch.where(losses.isposinf(), torch.zeros_like(losses), losses)
        if self.per_target:
            losses = losses / target_mask.sum(dim=1).clamp(min=1)
        return losses.sum() / max(len(losses), 1)

    def reference(self, outputs: Outputs) -> float:
        losses = [self._enumerated_nll(outputs, item) for item in range(len(outputs.targets))]
        return sum(losses) / max(len(losses), 1)

    def _enumerated_nll(self, outputs: Outputs, item: int) -> float:
        """By trying every path."""
        labels = outputs.targets[item][_require_target_mask(outputs)[item]].tolist()
        rows = outputs.logits[item][outputs.mask[item]].double().softmax(dim=-1).tolist()
        total = 0.0
        for path in itertools.product(range(outputs.logits.shape[-1]), repeat=len(rows)):
            merged = [symbol for symbol, _ in itertools.groupby(path)]
            if [symbol for symbol in merged if symbol != self.blank] == labels:
                total += math.prod(row[symbol] for row, symbol in zip(rows, path, strict=True))
        if total == 0:
            return 0.0 if self.impossible == "zero" else math.inf
        return -math.log(total) / (max(len(labels), 1) if self.per_target else 1)

    def examples(self) -> Sequence[Outputs]:
        return [self._example(seed) for seed in range(3)]

    def _example(self, seed: int) -> Outputs:
        """Four items: two labels, two alike, none, and one that is impossible if that is zero."""
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(seed)
        shape = (4, 4, self.blank + 3)
        logits = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
        labels = torch.tensor([[1, 2], [2, 2], [1, 1], [2, 2]], device="cpu") + self.blank
        counts = torch.tensor([2, 2, 0, 2], device="cpu")[:, None]
        frames = torch.tensor([4, 3, 2, 2 if self.impossible == "zero" else 3], device="cpu")
        return Outputs(
            logits.to(device),
            labels.to(device),
            (torch.arange(4, device="cpu") < frames[:, None]).to(device),
            target_mask=(torch.arange(2, device="cpu") < counts).to(device),
        )


def _raise_if_impossible(losses: Tensor, mask: Tensor, target_mask: Tensor) -> None:
    """ZooError if a labelling of losses [B] has no path."""
    if torch.compiler.is_compiling() or losses.is_meta:
        return
    for item in losses.isposinf().nonzero()[:, 0].tolist():
        raise ZooError(
            f"item {item} of the batch has {int(target_mask[item].sum())} labels and "
            f"{int(mask[item].sum())} frames, so that no path spells it; a label takes a frame, "
            "and two alike in a row one more"
        )


def _require_target_mask(outputs: Outputs) -> Tensor:
    if outputs.target_mask is None:
        raise ZooError(
            "objective 'ctc' needs targets that are not aligned with the logits and have a "
            "target_mask of their own, as model 'ctc-recogniser' gives them"
        )
    return outputs.target_mask
