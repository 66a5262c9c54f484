"""Output layer of a Transformer decoder."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, FromParent, Linear
from zoo_transformer.output_transform import OutputTransform


class Output(nn.Module):
    r"""Computes the logits of the vocabulary, optionally with the embedding table.

    .. math:: W h \quad \text{or, tied,} \quad E h

    Args:
        embedding: the target embedding.
        tied: whether to use the embedding table (Press and Wolf 2017).
        bias: whether the logits have a bias.
        scale: factor applied to the states.
        cap: largest absolute logit c, by c tanh(x / c) (Gemma 2); none if not set.
        transform: layer before the logits, as in masked language models; none if not set.

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
        cap: Annotated[float, Field(gt=0)] | None = None,
        transform: Blueprint[OutputTransform] | None = None,
    ) -> None:
        super().__init__()
        if embedding.vocab is None:
            raise ZooError(
                f"embedding '{embedding.name}' is not a token embedding and has no vocabulary"
            )
        self.tied, self.scale, self.cap = tied, scale, cap
        self.transform = None if transform is None else transform.build(dim=embedding.dim)
        self.embedding = embedding if tied else None
        self.map = None if tied else Linear(embedding.dim, embedding.vocab, bias=False)
        self.bias = nn.Parameter(torch.empty(embedding.vocab)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        if self.transform is not None:
            states = self.transform(states)
        if self.scale != 1:
            states = states * self.scale
        if self.embedding is not None:
            logits = self.embedding.unembed(states)
        else:
            assert self.map is not None
            logits = self.map(states)
        logits = logits if self.bias is None else logits + self.bias
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)

    def extra_repr(self) -> str:
        return f"tied={self.tied}, bias={self.bias is not None}, scale={self.scale}, cap={self.cap}"
