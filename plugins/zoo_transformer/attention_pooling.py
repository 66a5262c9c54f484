"""Attention pooling."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import Attention, Blueprint, Encoder, FromParent, Mask, Memory
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm


class AttentionPooledEncoder(Encoder):
    r"""Encoder whose summary attends to the states with one learned query.

    .. math:: y = \mathrm{attend}(q, h), \qquad s = y + \mathrm{FFN}(\mathrm{LN}(y))

    Models use the summary with ``pooling: summary``.

    Paper: Zhai et al. 2022 (multi-head attention pooling).

    Args:
        input_dim: width of the inputs.
        encoder: encoder whose states are pooled.
        attention: attention of the query to the states.
        feed_forward: feed-forward network.
        norm: kind of the norm; LayerNorm if not set.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states of the encoder [B, S, D]; the summary is
        [B, D].
    """

    name: ClassVar[str] = "attention-pooling"
    paper: ClassVar[str] = "Zhai et al. 2022, Scaling Vision Transformers, arXiv:2106.04560"
    weight_roles: ClassVar[Mapping[str, str]] = {"query": "embedding"}

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        encoder: Blueprint[Encoder],
        attention: Blueprint[Attention],
        feed_forward: Blueprint[FeedForward],
        norm: Blueprint[Norm] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder.build(input_dim=input_dim)
        dim = self.encoder.output_dim
        self.input_dim, self.output_dim, self.carry = input_dim, dim, self.encoder.carry
        self.query = nn.Parameter(torch.empty(dim))
        self.attention = attention.build(query_dim=dim, key_dim=dim)
        self.attention.forbid_sequential("attention pooling")
        self.summary_dim = self.attention.output_dim
        self.norm = (norm.build() if norm else Norm()).build(self.summary_dim)
        self.feed_forward = feed_forward.build(dim=self.summary_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.query, std=0.02)

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}"

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.encoder(inputs, mask)
        query = self.query.expand(len(inputs), 1, -1)
        y = self.attention(query, memory.states, Mask(keys=memory.mask)).context[:, 0]
        return replace(memory, summary=y + self.feed_forward(self.norm(y)))
