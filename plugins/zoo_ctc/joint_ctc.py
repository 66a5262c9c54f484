"""Joint CTC and attention: two heads that learn together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import Outputs, ZooError
from zoo.plugin import Blueprint, Objective
from zoo_ctc.ctc import Ctc, ImpossibleMode


class JointCtc(Objective):
    r"""Weighs the CTC loss of one head with the loss of a decoder that attends.

    .. math:: L = \lambda\, L_{\mathrm{CTC}} + (1 - \lambda)\, L_{\mathrm{attention}}

    The decoder's outputs are the model's own; the CTC head's are its part "ctc".

    Paper: Kim et al. 2017, equation 9; Watanabe et al. 2017, equation 14.

    Args:
        attention: the objective of the decoder, for example cross-entropy.
        weight: of the CTC loss, lambda.
        blank: the symbol that stands for no label, as in ctc.
        per_target: divide the CTC loss of each item by the number of its labels.
        impossible: the CTC loss of an item without a path, as in ctc.

    Shapes:
        what attention takes, with a part "ctc" as the objective ctc takes it -> scalar.
    """

    name: ClassVar[str] = "joint-ctc"
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
    ) -> None:
        super().__init__()
        self.weight = weight
        self.attention = attention.build()
        self.ctc = Ctc(blank=blank, per_target=per_target, impossible=impossible)

    def forward(self, outputs: Outputs) -> Tensor:
        attention_loss: Tensor = self.attention(outputs)
        ctc_loss: Tensor = self.ctc(_ctc_outputs(outputs))
        return self.weight * ctc_loss + (1 - self.weight) * attention_loss

    def reference(self, outputs: Outputs) -> float:
        attention_loss = self.attention.reference(outputs)
        return (
            self.weight * self.ctc.reference(_ctc_outputs(outputs))
            + (1 - self.weight) * attention_loss
        )

    def examples(self) -> Sequence[Outputs]:
        pairs = zip(self.attention.examples(), self.ctc.examples(), strict=False)
        return [replace(own, parts={"ctc": part}) for own, part in pairs]


def _ctc_outputs(outputs: Outputs) -> Outputs:
    if "ctc" not in outputs.parts:
        raise ZooError(
            "objective 'joint-ctc' needs a model with a second head 'ctc', as model "
            f"'ctc-attention'; this one has {', '.join(sorted(outputs.parts)) or 'none'}"
        )
    return outputs.parts["ctc"]
