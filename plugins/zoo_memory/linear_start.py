"""Alignment that can be replaced by the scores during the first phase of training."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext


class LinearStart(Alignment):
    r"""Alignment whose weights are the scores themselves until `linear` is set to False.

    .. math:: p_i = u^\top m_i \text{ while linear, then } p = \mathrm{align}(u^\top m)

    Paper: Sukhbaatar et al. 2015, section 4.2. `linear` is a buffer, as is the number of
    validations left, so that a saved model continues in the phase in which it was saved.

    Args:
        align: the alignment after the first phase.
        validations: number of validations in the first phase; None: it ends at the first one that
            is not the best.

    Shapes:
        scores [..., T, S], mask broadcastable to it -> weights [..., T, S], 0 for masked keys.
    """

    name: ClassVar[str] = "linear-start"

    linear: Tensor
    validations_left: Tensor | None

    def __init__(self, align: Alignment, validations: int | None = None) -> None:
        super().__init__()
        self.align = align
        self.register_buffer("linear", torch.tensor(True))
        left = None if validations is None else torch.tensor(validations)
        self.register_buffer("validations_left", left)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        weights = self.align(scores, mask, context)
        linear = scores if mask is None else scores.masked_fill(~mask, 0.0)
        return torch.where(self.linear, linear, weights)

    def observe_validation(self, *, is_best: bool) -> bool:
        """Set `linear` to False when the first phase has ended; return whether it changes."""
        if self.validations_left is None:
            ended = not is_best
        else:
            self.validations_left.sub_(1).clamp_(min=0)
            ended = not bool(self.validations_left)
        changed = ended and bool(self.linear)
        if changed:
            self.linear.fill_(False)
        return changed
