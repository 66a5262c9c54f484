"""Forced tokens."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Filter
from zoo_sampling.token_ids import TokenIds, token_mask, validate_tokens


class ForcedTokens(Filter):
    r"""Forced tokens: at given positions of the sequence, one token is certain.

    .. math:: x'_v = \begin{cases} 0 & v = f_{t} \\ -\infty & \text{otherwise} \end{cases}
        \quad \text{for } s \le t < s + |f|

    The first token of translation models is often that of the target language.

    Paper: Tang et al. 2020, section 3.

    Args:
        tokens: the token IDs, f.
        start: position of the first of them, s; the start token (bos) has position 0.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "forced-tokens"
    paper: ClassVar[str] = (
        "Tang et al. 2020, Multilingual Translation with Extensible Multilingual Pretraining and "
        "Finetuning, arXiv:2008.00401"
    )

    test_params: ClassVar[Mapping[str, Any]] = {"tokens": [2, 4], "start": 3}

    def __init__(self, *, tokens: TokenIds, start: Annotated[int, Field(ge=1)] = 1) -> None:
        if start < 1:
            raise ZooError(f"start is {start}; it must be at least 1")
        self.tokens = validate_tokens(tokens)
        self.start = start

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        index = tokens.shape[-1] - self.start
        if not 0 <= index < len(self.tokens):
            return logprobs
        forced = token_mask([self.tokens[index]], logprobs)
        return logprobs.masked_fill(~forced, -math.inf).masked_fill(forced, 0.0)
