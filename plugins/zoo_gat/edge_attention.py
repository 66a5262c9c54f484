"""One layer of attention over the edges of a graph.

Letters: B batch, N nodes, M edges of all graphs together, H heads, D width of a head.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, FromParent, RecordsAttention, Scorer, ScorerBank
from zoo_gat.edges import EdgeList


class EdgeAttention(RecordsAttention):
    r"""Gives each node the weighted sum of what the nodes say from which edges lead to it.

    .. math:: h_i' = \sum_{j \to i} \alpha_{ij} V h_j + b, \qquad
        \alpha_i = \mathrm{softmax}_{j \to i}\, \mathrm{score}(Q h_i, K h_j)

    While somebody records, it reports weights [B, H, E], followed by one a node where there are
    self-loops; [B, H, N, N] where every node sees every node.

    Args:
        input_dim: width of the nodes' features.
        head_dim: width of a head.
        heads: how many looks are taken at once.
        merge: heads side by side, or their mean.
        scorer: scores targets against sources; every head has its own.
        project: 'shared' lets one projection serve queries, keys and values (GAT), 'kv' one serve
            keys and values (GATv2), 'qkv' gives each its own (graph Transformer).
        bias: on the projections and on what comes out, or on the latter alone.
        residual: adds the inputs, as they are where the widths allow, or through a linear map.
        dropout: on the weights of the edges.

    Shapes:
        inputs [B, N, input_dim] -> [B, N, output_dim].
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        head_dim: FromParent[int],
        heads: FromParent[int],
        merge: FromParent[str],
        scorer: Blueprint[Scorer],
        project: Literal["shared", "kv", "qkv"] = "shared",
        bias: bool | Literal["out"] = "out",
        residual: Literal["none", "identity", "linear"] = "none",
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        _validate_scorer(scorer)
        self.heads, self.merge = heads, merge
        self.output_dim = head_dim * (heads if merge == "concat" else 1)
        inner = heads * head_dim
        self.query = _glorot_linear(input_dim, inner, bias is True) if project != "shared" else None
        self.key = _glorot_linear(input_dim, inner, bias is True)
        self.value = _glorot_linear(input_dim, inner, bias is True) if project == "qkv" else None
        self.scorers = ScorerBank(scorer, heads, query_dim=head_dim, key_dim=head_dim)
        self.skip = (
            _glorot_linear(input_dim, self.output_dim, False) if residual == "linear" else None
        )
        self.has_identity_residual = residual == "identity" and input_dim == self.output_dim
        self.bias = nn.Parameter(torch.zeros(self.output_dim)) if bias else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor, edges: EdgeList | None) -> Tensor:
        """inputs [B, N, input_dim], mask [B, N] -> [B, N, output_dim]."""
        keys = self.key(inputs)
        queries = keys if self.query is None else self.query(inputs)
        values = keys if self.value is None else self.value(inputs)
        # A weight of 0 does not hide what is not finite; and the projected are few, unlike inputs.
        values = values.masked_fill(~mask[..., None], 0.0)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (queries, keys, values))
        attended = (
            self._attend_dense(q, k, v, mask)
            if edges is None
            else self._attend_edges(q, k, v, edges)
        )
        merged = attended.flatten(2) if self.merge == "concat" else attended.mean(dim=2)
        if self.skip is not None:
            merged = merged + self.skip(inputs)
        elif self.has_identity_residual:
            merged = merged + inputs
        return merged if self.bias is None else merged + self.bias

    def _attend_edges(
        self, queries: Tensor, keys: Tensor, values: Tensor, edges: EdgeList
    ) -> Tensor:
        """Along edges: [B, N, H, D] three times -> [B, N, H, D]."""
        shape = values.shape
        queries, keys, values = (part.flatten(0, 1) for part in (queries, keys, values))
        scores = self.scorers(
            queries.transpose(0, 1), keys.transpose(0, 1), edges=(edges.target, edges.source)
        ).transpose(0, 1)  # [M, H]
        weights = edges.softmax(scores)
        self.record(edges.unflatten_batch(weights))
        messages = values.index_select(0, edges.source) * self.dropout(weights)[..., None]
        return edges.scatter_sum(messages).view(shape)

    def _attend_dense(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Every node sees every real node: [B, N, H, D] three times -> [B, N, H, D]."""
        queries, keys, values = (part.transpose(1, 2) for part in (queries, keys, values))
        scores = self.scorers(queries, keys)  # [B, H, N, N]
        masked = ~mask[:, None, None, :]
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(masked, lowest).softmax(dim=-1).masked_fill(masked, 0.0)
        self.record(weights)
        attended: Tensor = self.dropout(weights) @ values
        return attended.transpose(1, 2)


def _validate_scorer(scorer: Blueprint[Scorer]) -> None:
    """Some scorers have nothing to say of a single edge."""
    if scorer.cls.ignores_keys:
        raise ZooError(
            f"scorer '{scorer.label}' looks at places alone, but the nodes of a graph have none"
        )
    if scorer.cls.sequential:
        raise ZooError(
            f"scorer '{scorer.label}' needs to know where the query before looked, but the nodes "
            "of a graph all look at once"
        )


def _glorot_linear(input_dim: int, output_dim: int, bias: bool) -> nn.Linear:
    linear = nn.Linear(input_dim, output_dim, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear
