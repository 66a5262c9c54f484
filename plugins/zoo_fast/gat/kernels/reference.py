"""Attention over edges in PyTorch operations, for second derivatives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo_fast.gat.kernels.arguments import EdgeScore, Inputs
from zoo_fast.gat.kernels.launch import dropout_factors
from zoo_fast.gat.kernels.score_kinds import GAT
from zoo_gat.edges import EdgeList


def attend_reference(inputs: Inputs, edges: EdgeList, score: EdgeScore) -> Tensor:
    """Compute the attention of each node over its incoming edges, with the same dropout."""
    weights = edges.softmax(_scores(inputs, edges, score))  # [M, H]
    if score.dropout_p > 0:
        weights = weights * dropout_factors(weights, score)
    values = inputs.v.masked_fill(~edges.is_valid_node[:, None, None], 0.0)
    output = edges.scatter_sum(values.index_select(0, edges.index.source) * weights[..., None])
    return output if inputs.bias is None else output + inputs.bias.view(output.shape[1:])


def _scores(inputs: Inputs, edges: EdgeList, score: EdgeScore) -> Tensor:
    q = inputs.q.index_select(0, edges.index.target)
    k = inputs.k.index_select(0, edges.index.source)
    if score.kind == GAT:
        return F.leaky_relu(q + k, score.factor)
    if inputs.a is not None:
        return torch.einsum("mhd,hd->mh", F.leaky_relu(q + k, score.factor), inputs.a)
    return (q * k).sum(dim=-1) * score.factor
