"""The CTC loss."""

import itertools
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import Outputs, ZooError
from zoo.plugin import Objective, OutputRequirement, full_precision
from zoo_ctc.lattice import build_lattice
from zoo_ctc.likelihood import likelihood

ImpossibleMode = Literal["infinite", "zero", "raise"]


class Ctc(Objective):
    r"""CTC loss: negative log-likelihood of the labels, summed over all alignments.

    .. math::
        L = -\frac{1}{B} \sum_b \log \sum_{\pi :\, \mathcal{B}(\pi) = y_b} \prod_t p_t(\pi_t)

    where B(π) merges repeated labels of a path and removes blanks. The sum is computed by the
    forward recursion in log space, the gradient from forward and backward variables. Half-precision
    logits are converted to float32. Targets without a path, because they have more labels than
    frames (equal neighbours need a blank in between), have the loss set by ``impossible`` and no
    gradient. So do targets with an invalid label on an accelerator, where a check would
    synchronise; on the CPU an invalid label raises ZooError.

    Paper: Graves et al. 2006, equations 6 to 8 and 14 to 16.

    Args:
        blank: label ID of the blank.
        per_target: divide the loss of each item by its number of labels.
        impossible: loss of an item without a path: "infinite", "zero" (as ``zero_infinity`` in
            torch), or "raise" ZooError, which synchronises (and is "infinite" when compiled).

    Shapes:
        logits [B, T, V], mask [B, T] over frames, targets [B, U], target_mask [B, U] with valid
        labels first -> scalar, the mean over items; 0 for an empty batch.
    """

    name: ClassVar[str] = "ctc"
    version: ClassVar[int] = 2
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

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1 and params.get("impossible") == "refuse":
            params["impossible"] = "raise"
        return params, tensors

    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(
            targets="sequence", logits="frame", uses=(), constants={"blank": self.blank}
        )

    def forward(self, outputs: Outputs) -> Tensor:
        target_mask = _require_target_mask(outputs)
        losses = -self.log_likelihood(
            outputs.logits, outputs.mask, outputs.targets, target_mask
        )  # [B]
        if self.impossible == "raise":
            _raise_if_impossible(losses, outputs.mask, target_mask)
        if self.impossible == "zero":
            losses = torch.where(losses.isposinf(), torch.zeros_like(losses), losses)
        if self.per_target:
            losses = losses / target_mask.sum(dim=1).clamp(min=1)
        return losses.sum() / max(len(losses), 1)

    def log_likelihood(
        self, logits: Tensor, mask: Tensor, targets: Tensor, target_mask: Tensor
    ) -> Tensor:
        """Compute the log-probability [B] of the labels, summed over all alignments.

        It is -inf, with zero gradient, for an item without a path through the lattice.

        Shapes:
            logits [B, T, V]; mask [B, T], True for valid frames; targets, target_mask [B, U], valid
            labels first.
        """
        lattice = build_lattice(targets, target_mask, blank=self.blank, vocab=logits.shape[-1])
        return likelihood(full_precision(logits).log_softmax(dim=-1), mask, lattice)

    def weight(self, outputs: Outputs) -> Tensor:
        return torch.tensor(len(outputs.mask), device=outputs.mask.device)

    def reference(self, outputs: Outputs) -> float:
        losses = [self._enumerated_nll(outputs, item) for item in range(len(outputs.targets))]
        return sum(losses) / max(len(losses), 1)

    def _enumerated_nll(self, outputs: Outputs, item: int) -> float:
        """Compute the loss of an item by enumerating all paths."""
        labels = outputs.targets[item][_require_target_mask(outputs)[item]].tolist()
        rows = outputs.logits[item][outputs.mask[item]].double().softmax(dim=-1).tolist()
        total = 0.0
        for path in itertools.product(range(outputs.logits.shape[-1]), repeat=len(rows)):
            merged = [label for label, _ in itertools.groupby(path)]
            if [label for label in merged if label != self.blank] == labels:
                total += math.prod(row[label] for row, label in zip(rows, path, strict=True))
        if total == 0:
            return 0.0 if self.impossible == "zero" else math.inf
        return -math.log(total) / (max(len(labels), 1) if self.per_target else 1)

    def examples(self) -> Sequence[Outputs]:
        return [self._example(seed) for seed in range(3)]

    def _example(self, seed: int) -> Outputs:
        """Return four items: two labels, two equal ones, none, and one without a path for zero."""
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
    """Raise ZooError if an item of losses [B] has no path."""
    if torch.compiler.is_compiling() or losses.is_meta:
        return
    for item in losses.isposinf().nonzero()[:, 0].tolist():
        raise ZooError(
            f"item {item} of the batch has {int(target_mask[item].sum())} labels, but its "
            f"{int(mask[item].sum())} frames have no path for them; each label needs a frame, and "
            "each repeated label one more"
        )


def _require_target_mask(outputs: Outputs) -> Tensor:
    if outputs.target_mask is None:
        raise ZooError(
            "objective 'ctc' needs a target_mask, but the model returned none; use a model with "
            "unaligned targets, for example ctc-recogniser"
        )
    return outputs.target_mask
