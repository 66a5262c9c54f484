"""Interface of filters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from zoo.interfaces.component import Component


class Filter(Component, ABC):
    """Modifies next-token scores, given the previous tokens, before the sampler.

    Filters are applied in the given order. With a single hypothesis they receive the decoder's
    logits and the result is normalised; with several hypotheses they receive log-probabilities
    and the result is not normalised again, so that hypotheses stay comparable. This is also what
    transformers does.

    Laws:
        no score increases, except to 0 that of the only token left; without previous tokens
        nothing changes; the scores of a hypothesis depend on its own tokens only; the inputs are
        not modified in place.
    """

    kind: ClassVar[str] = "filter"
    min_vocab: int = 0
    """The smallest vocabulary that has all token IDs in its parameters."""
    at_max_length: ClassVar[bool] = False
    """Whether it is applied only to the last token before the maximum length of an item."""

    @abstractmethod
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        """Return modified logprobs [B, W, V], given the previous tokens [B, W, T].

        The previous tokens are the prompt, including bos, and the generated tokens.
        """

    def __call__(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return self.forward(logprobs, tokens)
