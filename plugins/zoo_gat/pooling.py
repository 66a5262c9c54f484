"""Pooling of the nodes of a graph into one vector, independent of their order.

Notation: B batch, N nodes, D width.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from zoo.plugin import Blueprint, RecordsAttention, Scorer
from zoo_gat.edge_attention import validate_scorer


class NodePooling(nn.Module):
    """Mean, sum or maximum of the states of the valid nodes; 0 for a graph without valid nodes.

    Args:
        pooling: how the states are combined; the maximum is that of each feature.

    Shapes:
        states [B, N, D], mask [B, N] -> [B, D].
    """

    def __init__(self, pooling: Literal["mean", "sum", "max"]) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        valid = mask[..., None]
        if self.pooling == "max":
            highest = states.masked_fill(~valid, float("-inf")).amax(dim=1)
            return highest.masked_fill(~valid.any(dim=1), 0.0)
        total = states.masked_fill(~valid, 0.0).sum(dim=1)
        return total if self.pooling == "sum" else total / valid.sum(dim=1).clamp(min=1)

    def extra_repr(self) -> str:
        return f"pooling={self.pooling!r}"


class AttentionPooling(RecordsAttention):
    r"""Attention of one learned query over the nodes.

    .. math:: g = \sum_i \alpha_i h_i, \qquad \alpha = \mathrm{softmax}_i\, \mathrm{score}(q, h_i)

    Recorded weights are [B, 1, 1, N].

    Args:
        scorer: computes the score of each node.
        dim: width of the states.

    Shapes:
        states [B, N, D], mask [B, N] -> [B, D].
    """

    def __init__(self, scorer: Blueprint[Scorer], dim: int) -> None:
        super().__init__()
        validate_scorer(scorer)
        self.query = nn.Parameter(torch.empty(dim))
        self.scorer = scorer.build(query_dim=dim, key_dim=dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.query, std=self.query.numel() ** -0.5)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        masked = ~mask[:, None]  # [B, 1, N]
        # A weight of 0 does not cancel values that are not finite.
        values = states.masked_fill(~mask[..., None], 0.0)
        query = self.query.expand(len(states), 1, -1)
        scores = self.scorer(query, values)  # [B, 1, N]
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(masked, lowest).softmax(dim=-1).masked_fill(masked, 0.0)
        self.record(weights[:, None])
        pooled: Tensor = (weights @ values)[:, 0]
        return pooled
