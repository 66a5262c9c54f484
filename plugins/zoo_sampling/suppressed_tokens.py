"""Suppressed tokens."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Filter
from zoo_sampling.token_ids import TokenIds, token_mask, validate_tokens


class SuppressedTokens(Filter):
    r"""Suppressed tokens: masks tokens at all positions of the sequence, or in a range.

    .. math:: x'_v = -\infty \ \text{for } v \in S,\ s \le t < e

    With the end token and a stop position, outputs have a minimum length.

    Paper: Radford et al. 2023, section 4.5 (tokens without speech; no end at the beginning).

    Args:
        tokens: the token IDs, S.
        start: the first position, s; the start token (bos) has position 0.
        stop: the position after the last one, e; all positions from start if not set.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "suppressed-tokens"
    paper: ClassVar[str] = (
        "Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision, "
        "arXiv:2212.04356"
    )

    test_params: ClassVar[Mapping[str, Any]] = {"tokens": [2, 4], "stop": 8}

    def __init__(
        self,
        *,
        tokens: TokenIds,
        start: Annotated[int, Field(ge=1)] = 1,
        stop: Annotated[int, Field(ge=2)] | None = None,
    ) -> None:
        if start < 1 or (stop is not None and stop <= start):
            raise ZooError(
                f"start is {start} and stop is {stop}; start must be at least 1, and stop above it"
            )
        self.tokens = validate_tokens(tokens)
        self.start, self.stop = start, stop

    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        position = tokens.shape[-1]
        if position < self.start or (self.stop is not None and position >= self.stop):
            return logprobs
        return logprobs.masked_fill(self.suppressed(logprobs), -math.inf)

    def suppressed(self, logprobs: Tensor) -> Tensor:
        """Return a mask [V] of the tokens to suppress, given logprobs [..., V]."""
        return token_mask(self.tokens, logprobs)
