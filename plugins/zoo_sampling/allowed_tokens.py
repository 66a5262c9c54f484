"""Allowed tokens."""

from typing import ClassVar

from torch import Tensor

from zoo_sampling.suppressed_tokens import SuppressedTokens


class AllowedTokens(SuppressedTokens):
    r"""Allowed tokens: masks all other tokens at all positions of the sequence, or in a range.

    .. math:: x'_v = -\infty \ \text{for } v \notin S,\ s \le t < e

    With the tokens of languages at the first position, the model detects the language.

    Paper: Radford et al. 2023, section 2.3.

    Args:
        tokens: the token IDs, S.
        start: the first position, s; the start token (bos) has position 0.
        stop: the position after the last one, e; all positions from start if not set.

    Shapes:
        logprobs [B, W, V], tokens [B, W, T] -> [B, W, V].
    """

    name: ClassVar[str] = "allowed-tokens"

    def suppressed(self, logprobs: Tensor) -> Tensor:
        return ~super().suppressed(logprobs)
