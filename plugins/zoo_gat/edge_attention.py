"""Attention over the edges of a graph.

Notation: B batch, N nodes, M edges of all graphs together, H heads, D width of a head.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, FromParent, RecordsAttention, Scorer, ScorerBank
from zoo_gat.edges import EdgeList


class GlorotLinear(nn.Linear):
    """Linear map with Glorot uniform weights and a zero bias."""

    def reset_parameters(self) -> None:
        super().reset_parameters()  # keeps the sequence of random numbers of earlier versions
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class EdgeAttention(RecordsAttention):
    r"""Attention layer over edges: each node sums the values of its incoming edges' sources.

    .. math:: h_i' = \sum_{j \to i} \alpha_{ij} V h_j + b, \qquad
        \alpha_i = \mathrm{softmax}_{j \to i}\, \mathrm{score}(Q h_i, K h_j)

    Recorded weights are [B, H, E], followed by those of the self-loops, [B, H, E + N]; without
    edges they are [B, H, N, N].

    Args:
        input_dim: width of the node features.
        head_dim: width of a head.
        heads: number of heads.
        merge: concatenate the heads, or average them.
        scorer: computes the score of each edge; each head has its own.
        project: 'shared' uses one projection for queries, keys and values (GAT), 'kv' one for keys
            and values (GATv2), 'qkv' three projections (graph Transformer).
        bias: whether projections and outputs have a bias; 'out' for the outputs only.
        residual: 'identity' adds the inputs if the widths are equal, 'linear' adds a linear
            projection of the inputs.
        dropout: dropout probability of the weights.
        head_dropout: dropout probability of the inputs and, after the scores, of the values of each
            head. Each head has its own masks, as in the code of Veličković et al. 2018.

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
        head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        validate_scorer(scorer)
        self.input_dim, self.head_dim, self.heads = input_dim, head_dim, heads
        self.merge, self.project, self.residual = merge, project, residual
        self.output_dim = head_dim * (heads if merge == "concat" else 1)
        inner = heads * head_dim
        self.query = GlorotLinear(input_dim, inner, bias is True) if project != "shared" else None
        self.key = GlorotLinear(input_dim, inner, bias is True)
        self.value = GlorotLinear(input_dim, inner, bias is True) if project == "qkv" else None
        self.scorers = ScorerBank(scorer, heads, query_dim=head_dim, key_dim=head_dim)
        self.skip = (
            GlorotLinear(input_dim, self.output_dim, False) if residual == "linear" else None
        )
        self.has_identity_residual = residual == "identity" and input_dim == self.output_dim
        self.bias = nn.Parameter(torch.empty(self.output_dim)) if bias else None
        self.dropout = nn.Dropout(dropout)
        self.head_dropout = nn.Dropout(head_dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, inputs: Tensor, mask: Tensor, edges: EdgeList | None) -> Tensor:
        """Compute [B, N, output_dim] from inputs [B, N, input_dim] and mask [B, N]."""
        queries, keys, values = self.project_inputs(inputs)
        # A weight of 0 does not cancel values that are not finite.
        values = values.masked_fill(~mask[..., None], 0.0)
        shape = (*values.shape[:2], self.heads, self.head_dim)
        q, k, v = (part.reshape(shape) for part in (queries, keys, values))
        if edges is None:
            attended = self._attend_dense(q, k, v, mask)
        else:
            attended = self._attend_edges(q, k, v, edges)  # [B, N, H, D]
        merged = self.merge_heads(attended, inputs)
        return merged if self.bias is None else merged + self.bias

    def project_inputs(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values [B, N, H * D]; parts can be the same tensor."""
        if not self.drops_heads:
            keys = self.key(inputs)
            queries = keys if self.query is None else self.query(inputs)
            return queries, keys, keys if self.value is None else self.value(inputs)
        heads = [self.head_dropout(inputs) for _ in range(self.heads)]
        keys = self._project_heads(self.key, heads)
        queries = keys if self.query is None else self._project_heads(self.query, heads)
        values = keys if self.value is None else self._project_heads(self.value, heads)
        return queries, keys, self.head_dropout(values)

    def merge_heads(self, attended: Tensor, inputs: Tensor) -> Tensor:
        """Concatenate or average the heads of [B, N, H, D], and add the residual of the inputs."""
        merged = attended.flatten(2) if self.merge == "concat" else attended.mean(dim=2)
        if self.skip is not None:
            merged = merged + self.project_skip(inputs)
        elif self.has_identity_residual:
            merged = merged + inputs
        return merged

    def project_skip(self, inputs: Tensor) -> Tensor:
        """Return the linear projection of the inputs that is added to the output."""
        assert self.skip is not None
        projected: Tensor = self.skip(inputs)
        return projected

    @property
    def drops_heads(self) -> bool:
        """Whether each head has its own dropout of the inputs."""
        return self.head_dropout.training and self.head_dropout.p > 0

    def extra_repr(self) -> str:
        names = ("input_dim", "head_dim", "heads", "merge", "project", "residual")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def _attend_edges(
        self, queries: Tensor, keys: Tensor, values: Tensor, edges: EdgeList
    ) -> Tensor:
        """Attend along edges: queries, keys, values [B, N, H, D] -> [B, N, H, D]."""
        shape = values.shape
        queries, keys, values = (part.flatten(0, 1) for part in (queries, keys, values))
        scores = self.scorers(
            queries.transpose(0, 1),
            keys.transpose(0, 1),
            edges=(edges.index.target, edges.index.source),
        ).transpose(0, 1)  # [M, H]
        weights = edges.softmax(scores)
        self.record(edges.unflatten_batch(weights))
        messages = values.index_select(0, edges.index.source) * self.dropout(weights)[..., None]
        return edges.scatter_sum(messages).view(shape)

    def _project_heads(self, linear: nn.Module, heads: Sequence[Tensor]) -> Tensor:
        """Compute the outputs [B, N, H * D] of a linear layer, given the inputs of each head."""
        outputs = [
            linear(x).unflatten(-1, (self.heads, -1))[..., h, :] for h, x in enumerate(heads)
        ]
        return torch.cat(outputs, dim=-1)

    def _attend_dense(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Attend to all valid nodes: queries, keys, values [B, N, H, D] -> [B, N, H, D]."""
        queries, keys, values = (part.transpose(1, 2) for part in (queries, keys, values))
        scores = self.scorers(queries, keys)  # [B, H, N, N]
        masked = ~mask[:, None, None, :]
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(masked, lowest).softmax(dim=-1).masked_fill(masked, 0.0)
        self.record(weights)
        attended: Tensor = self.dropout(weights) @ values
        return attended.transpose(1, 2)


def validate_scorer(scorer: Blueprint[Scorer]) -> None:
    """Raise ZooError if the scorer cannot score single edges."""
    if scorer.cls.ignores_keys:
        raise ZooError(
            f"scorer '{scorer.label}' scores positions of a sequence, but the nodes of a graph "
            "have no positions; use another scorer"
        )
    if scorer.cls.sequential:
        raise ZooError(
            f"scorer '{scorer.label}' depends on previous queries, but graph attention "
            "processes all nodes in parallel; use another scorer"
        )
