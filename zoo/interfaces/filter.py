"""Filter: what may not, or should rather not, be said next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from zoo.interfaces.component import Component


class Filter(Component, ABC):
    """Lowers the scores of next tokens by what was said before, ahead of any sampler.

    Filters apply in the order given. Where one hypothesis is kept they see the decoder's logits,
    and what they leave is normalised again; where several are kept they see log-probabilities,
    which stay as they are left, so that hypotheses can be compared. Hugging Face does the same.

    Laws:
        no token becomes likelier; where nothing was said, nothing changes; each hypothesis is
        filtered by its own past alone; what is given is left untouched.
    """

    kind: ClassVar[str] = "filter"

    @abstractmethod
    def forward(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        """logprobs [B, W, V] of next tokens, tokens [B, W, T] so far -> logprobs [B, W, V].

        The tokens are those of the prompt, start token included, and all that followed.
        """

    def __call__(self, logprobs: Tensor, tokens: Tensor) -> Tensor:
        return self.forward(logprobs, tokens)
