"""From a decoder's states to logits."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, FromParent


class Output(nn.Module):
    r"""Scores every symbol of the vocabulary.

    .. math:: W h \quad \text{or, tied,} \quad E h

    Args:
        embedding: the target embedding, whose table a tied output shares.
        tied: use the embedding's table (Press and Wolf 2017).
        bias: one number a symbol.
        scale: multiplies the states first.

    Shapes:
        [B, T, D] -> [B, T, V].
    """

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        tied: bool = False,
        bias: bool = False,
        scale: Annotated[float, Field(gt=0)] = 1.0,
    ) -> None:
        super().__init__()
        if embedding.vocab is None:
            raise ZooError(f"embedding '{embedding.name}' has no vocabulary to predict")
        self.scale = scale
        self.embedding = embedding if tied else None
        self.map = None if tied else nn.Linear(embedding.dim, embedding.vocab, bias=False)
        self.bias = nn.Parameter(torch.zeros(embedding.vocab)) if bias else None

    def forward(self, states: Tensor) -> Tensor:
        states = states * self.scale
        if self.embedding is not None:
            logits = self.embedding.unembed(states)
        else:
            assert self.map is not None
            logits = self.map(states)
        return logits if self.bias is None else logits + self.bias
