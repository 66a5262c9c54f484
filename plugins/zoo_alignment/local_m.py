"""Local monotonic alignment."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Alignment, AlignmentContext
from zoo_alignment.masking import expand_mask, masked_softmax, valid_positions


class LocalM(Alignment):
    r"""Softmax over a window of keys around position t, for query t (local-m).

    .. math::
        p_t = \min(t, S - 1), \qquad
        \alpha_{ts} = \frac{\exp e_{ts} [|s - p_t| \le D]}
            {\sum_{s'} \exp e_{ts'} [|s' - p_t| \le D]}

    Paper: Luong et al. 2015, section 3.2, "monotonic alignment", with equation 7 inside the
    window. If there are more queries than keys, which the paper does not define, the window stays
    at the last key. Masked keys are not counted in positions.

    Args:
        D: half width of the window.

    Shapes:
        scores [B, H, T, S], mask broadcastable to it -> weights [B, H, T, S].
    """

    name: ClassVar[str] = "local-m"
    paper: ClassVar[str] = (
        "Luong et al. 2015, Effective Approaches to Attention-based Neural Machine Translation, "
        "arXiv:1508.04025"
    )
    needs_step_index: ClassVar[bool] = True
    test_params: ClassVar[Mapping[str, Any]] = {"D": 1}

    def __init__(self, *, D: Annotated[int, Field(ge=0)] = 10) -> None:
        super().__init__()
        self.D = D

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        mask = expand_mask(scores, mask)
        position, S = valid_positions(mask)
        if context is None:
            t = torch.arange(scores.shape[-2], device=scores.device)[:, None]  # [T, 1]
        else:
            t = context.steps()  # [B or 1, 1, T, 1]
        p = torch.minimum(t, S - 1)  # [B, H, T, 1]
        return masked_softmax(scores, mask & ((position - p).abs() <= self.D))
