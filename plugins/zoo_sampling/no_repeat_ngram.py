"""No-repeat n-gram filter."""

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import Filter
from zoo_sampling.logits import validate_range


class NoRepeatNgram(Filter):
    r"""No-repeat n-grams: masks tokens that would repeat an n-gram of the sequence.

    .. math:: x'_v = -\infty \ \text{if}\ (y_{t-n+1}, \dots, y_{t-1}, v)
        \ \text{occurs in}\ y_{<t}

    Paper: Paulus et al. 2018, section 2.5, for trigrams.

    Args:
        n: length of the n-grams; 1 masks every token of the sequence.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "no-repeat-ngram"
    paper: ClassVar[str] = (
        "Paulus et al. 2018, A Deep Reinforced Model for Abstractive Summarization, "
        "arXiv:1705.04304"
    )

    def __init__(self, *, n: Annotated[int, Field(ge=1)] = 3) -> None:
        self.n = int(validate_range("n", n, above=0))

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        B, W, T = tokens.shape
        if self.n > T:
            return logprobs
        grams = tokens.unfold(-1, self.n, 1)  # [B, W, T - n + 1, n]
        prefix = tokens[..., None, T - self.n + 1 :]  # [B, W, 1, n - 1]
        repeated = (grams[..., :-1] == prefix).all(dim=-1)  # [B, W, T - n + 1]
        # N-grams that do not match write to an extra column V.
        V = logprobs.shape[-1]
        banned = torch.zeros(B, W, V + 1, dtype=torch.bool, device=logprobs.device)
        banned.scatter_(-1, torch.where(repeated, grams[..., -1], V), True)
        return logprobs.masked_fill(banned[..., :V], -math.inf)
