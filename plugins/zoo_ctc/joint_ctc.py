"""The joint CTC and attention objective."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from zoo import Outputs, ZooError
from zoo.plugin import Blueprint, Objective, OutputRequirement
from zoo_ctc.ctc import Ctc, ImpossibleMode


class JointCtc(Objective):
    r"""Weighted sum of the CTC loss and the decoder's loss, both of whole sequences.

    .. math::
        L = -\frac{1}{B} \sum_b \big[ \lambda \log p_{\mathrm{CTC}}(y_b \mid x_b)
            + (1 - \lambda) \log p_{\mathrm{attention}}(y_b \mid x_b) \big]

    The outputs are those of the decoder, with those of the CTC head as "ctc".

    Paper: Kim et al. 2017, equation 9; Watanabe et al. 2017, equation 14.

    Args:
        attention: objective of the decoder, a mean over the targets that are not masked, such as
            cross-entropy.
        weight: weight lambda of the CTC loss.
        blank: label ID of the blank, as in ctc.
        per_target: divide the CTC loss of each item by its number of labels.
        impossible: CTC loss of an item without a path, as in ctc.
        attention_reduction: 'sum' multiplies the decoder's loss by the number of targets per item,
            as in the equation; 'mean' keeps the mean over targets; 'auto' is 'mean' with
            per_target and 'sum' without it, so that both losses have the same unit.

    Shapes:
        outputs as for ``attention``, with "ctc" as for the objective ctc -> scalar.
    """

    name: ClassVar[str] = "joint-ctc"
    version: ClassVar[int] = 3
    paper: ClassVar[str] = (
        "Kim et al. 2017, Joint CTC-Attention based End-to-End Speech Recognition using Multi-task "
        "Learning, arXiv:1609.06773"
    )

    def __init__(
        self,
        *,
        attention: Blueprint[Objective],
        weight: Annotated[float, Field(gt=0, lt=1)] = 0.3,
        blank: Annotated[int, Field(ge=0)] = 0,
        per_target: bool = False,
        impossible: ImpossibleMode = "infinite",
        attention_reduction: Literal["auto", "sum", "mean"] = "auto",
    ) -> None:
        super().__init__()
        self.ctc_weight = weight
        if attention_reduction == "auto":
            attention_reduction = "mean" if per_target else "sum"
        self.attention_reduction = attention_reduction
        self.attention = attention.build()
        self.mergeable = attention_reduction == "sum" and self.attention.mergeable
        self.blank = blank
        self.ctc = Ctc(blank=blank, per_target=per_target, impossible=impossible)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 2:  # the decoder's loss was always a mean over targets
            params["attention_reduction"] = "mean"
            return params, tensors
        return Ctc.migrate(version, params, tensors)

    def required_outputs(self) -> OutputRequirement:
        attention = self.attention.required_outputs()
        heads = {**attention.auxiliary, "ctc": self.ctc.required_outputs()}
        return replace(attention, auxiliary=heads)

    def forward(self, outputs: Outputs) -> Tensor:
        attention_loss: Tensor = self.attention(outputs)
        if self.attention_reduction == "sum":
            attention_loss = attention_loss * (outputs.mask.sum() / max(len(outputs.mask), 1))
        ctc_loss: Tensor = self.ctc(_ctc_outputs(outputs))
        return self.ctc_weight * ctc_loss + (1 - self.ctc_weight) * attention_loss

    def weight(self, outputs: Outputs) -> Tensor:
        if not self.mergeable:
            raise ZooError(
                "objective 'joint-ctc' adds a mean over items and a mean over targets, so a batch "
                "cannot be split; set attention_reduction to 'sum', or use one device and "
                "'accumulate: 1'"
            )
        return self.ctc.weight(_ctc_outputs(outputs))

    def reference(self, outputs: Outputs) -> float:
        attention_loss = self.attention.reference(outputs)
        if self.attention_reduction == "sum":
            attention_loss *= outputs.mask.sum().item() / max(len(outputs.mask), 1)
        return (
            self.ctc_weight * self.ctc.reference(_ctc_outputs(outputs))
            + (1 - self.ctc_weight) * attention_loss
        )

    def examples(self) -> Sequence[Outputs]:
        pairs = zip(self.attention.examples(), self.ctc.examples(), strict=False)
        return [
            replace(attention, auxiliary={"ctc": _first_items(ctc, len(attention.mask))})
            for attention, ctc in pairs
        ]


def _first_items(outputs: Outputs, items: int) -> Outputs:
    target_mask = outputs.target_mask
    return Outputs(
        outputs.logits[:items],
        outputs.targets[:items],
        outputs.mask[:items],
        target_mask=None if target_mask is None else target_mask[:items],
    )


def _ctc_outputs(outputs: Outputs) -> Outputs:
    if "ctc" not in outputs.auxiliary:
        raise ZooError(
            "objective 'joint-ctc' needs a model with a further head 'ctc', for example "
            f"ctc-attention, but this model has {', '.join(sorted(outputs.auxiliary)) or 'none'}"
        )
    return outputs.auxiliary["ctc"]
