"""Greedy decoding."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Sampler, Selection


class Greedy(Sampler):
    r"""Greedy decoding: select the most probable next token, the first one of ties.

    .. math:: y_t = \arg\max_v \log p(v \mid y_{<t}, x)

    Paper: Germann et al. 2001, which compares greedy with optimal decoding.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "greedy"
    paper: ClassVar[str] = (
        "Germann et al. 2001, Fast Decoding and Optimal Decoding for Machine Translation"
    )

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        best, tokens = logprobs.max(dim=-1)
        return Selection(tokens, torch.zeros_like(tokens), scores + best)
