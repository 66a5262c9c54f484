"""Forced end."""

import math
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Filter
from zoo_sampling.token_ids import token_mask


class ForcedEnd(Filter):
    r"""Forced end: the last token before the maximum length is certain.

    .. math:: x'_v = \begin{cases} 0 & v = f \\ -\infty & \text{otherwise} \end{cases}
        \quad \text{for the last token}

    Texts that reach the maximum length then have an end token, as those of BART.

    Paper: Lewis et al. 2020, section 5.3 (generation of BART).

    Args:
        token: the token ID, f.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "forced-end"
    paper: ClassVar[str] = (
        "Lewis et al. 2020, BART: Denoising Sequence-to-Sequence Pre-training for Natural Language "
        "Generation, Translation, and Comprehension, arXiv:1910.13461"
    )
    at_max_length: ClassVar[bool] = True

    def __init__(self, *, token: Annotated[int, Field(ge=0)] = 2) -> None:
        if token < 0:
            raise ZooError(f"token is {token}; it must be at least 0")
        self.token = token
        self.min_vocab = token + 1

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        if not tokens.shape[-1]:
            return logprobs
        forced = token_mask([self.token], logprobs)
        return logprobs.masked_fill(~forced, -math.inf).masked_fill(forced, 0.0)
