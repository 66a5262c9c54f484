"""Repetition penalty."""

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Filter


class RepetitionPenalty(Filter):
    r"""Repetition penalty: lowers the score of tokens that occur in the prompt or the output.

    .. math:: x'_v = \begin{cases} x_v / \theta & x_v \ge 0 \\ x_v \, \theta & x_v < 0
        \end{cases} \quad \text{for } v \in y_{<t}

    Paper: Keskar et al. 2019, section 4.1; negative scores are multiplied instead of divided, as in
    transformers.

    Args:
        penalty: 1 leaves scores unchanged; the paper uses 1.2.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "repetition-penalty"
    paper: ClassVar[str] = (
        "Keskar et al. 2019, CTRL: A Conditional Transformer Language Model for Controllable "
        "Generation, arXiv:1909.05858"
    )

    def __init__(
        self, *, penalty: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.2
    ) -> None:
        if not 1 <= penalty < math.inf:
            raise ZooError(f"penalty is {penalty}; it must be finite and at least 1")
        self.penalty = penalty

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        x = logprobs.gather(-1, tokens)  # [B, W, T]
        return logprobs.scatter(-1, tokens, torch.where(x < 0, x * self.penalty, x / self.penalty))
