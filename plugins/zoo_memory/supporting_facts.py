"""Objective of a dynamic memory network with labelled supporting facts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import Outputs, ZooError
from zoo.plugin import Blueprint, Objective, OutputRequirement


class SupportingFacts(Objective):
    r"""Loss of the answer plus loss of the gates over the supporting facts.

    .. math:: L = L_{\mathrm{answer}} + \lambda\, L_{\mathrm{facts}}

    The gates are the outputs' part "gates". Without it the loss is that of the answer.

    Paper: Kumar et al. 2016, section 2.5, where both losses are cross-entropies.

    Args:
        answer: objective of the answer, for example cross-entropy.
        facts: objective of the gates, for example binary-cross-entropy.
        weight: weight of the gates' loss, lambda.

    Shapes:
        outputs for `answer`, with a part "gates" for `facts`: logits [B, S, E] of E episodes,
        targets [B, S, E] of 0 and 1, mask [B, S] -> scalar.
    """

    name: ClassVar[str] = "supporting-facts"
    paper: ClassVar[str] = (
        "Kumar et al. 2016, Ask Me Anything: Dynamic Memory Networks, arXiv:1506.07285"
    )
    mergeable: bool = False

    def __init__(
        self,
        *,
        answer: Blueprint[Objective],
        facts: Blueprint[Objective],
        weight: Annotated[float, Field(ge=0)] = 1.0,
    ) -> None:
        super().__init__()
        self.answer = answer.build()
        self.facts = facts.build()
        self.facts_weight = weight

    def required_outputs(self) -> OutputRequirement:
        answer = self.answer.required_outputs()
        heads = {**answer.auxiliary, "gates": self.facts.required_outputs()}
        return replace(answer, auxiliary=heads, optional=(*answer.optional, "gates"))

    def forward(self, outputs: Outputs) -> Tensor:
        loss: Tensor = self.answer(outputs)
        gates = outputs.auxiliary.get("gates")
        return loss if gates is None else loss + self.facts_weight * self.facts(gates)

    def weight(self, outputs: Outputs) -> Tensor:
        if "gates" in outputs.auxiliary:
            raise ZooError(
                "objective 'supporting-facts' adds a mean over answers and a mean over facts, so a "
                "batch cannot be split; use one device and 'accumulate: 1'"
            )
        return self.answer.weight(outputs)

    def reference(self, outputs: Outputs) -> float:
        total = self.answer.reference(outputs)
        gates = outputs.auxiliary.get("gates")
        return total if gates is None else total + self.facts_weight * self.facts.reference(gates)

    def examples(self) -> Sequence[Outputs]:
        answers = self.answer.examples()
        gates = self.facts.examples()
        joint = [replace(a, auxiliary={"gates": g}) for a, g in zip(answers, gates, strict=False)]
        return [*joint, *answers]
