"""Graph attention encoder."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Encoder, FromParent, Memory
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList


class GraphAttention(Encoder):
    r"""Lets every node look at its neighbours, layer after layer.

    .. math:: h_i \leftarrow \mathrm{ELU}\Big( \big\Vert_{k=1}^{K}
        \sum_{j \to i} \alpha_{ij}^k W^k h_j \Big)

    Paper: Veličković et al. 2018, equations 4 to 6. With scorer `gatv2` and project 'kv' the layers
    are those of Brody et al. 2022, with `scaled-dot`, 'qkv' and a linear residual those of
    Shi et al. 2021.

    Args:
        input_dim: width of the nodes' features.
        layers: how many.
        hidden: width of a head.
        attention: how nodes look at their neighbours.
        heads: how many looks are taken at once; side by side except on the last layer.
        output: width of a head of the last layer; hidden if not set.
        output_heads: how many the last layer has; heads if not set.
        merge: what the last layer does with its heads.
        activation: after every layer but the last.
        self_loops: every node looks at itself, once, whether or not the edges say so.
        dropout: on the inputs of each layer.

    Shapes:
        inputs [B, N, D], mask [B, N], edges [B, E, 2], each (source, target), padded with -1 ->
        states [B, N, output_dim]; the summary is their mean. Without edges every node sees every
        node. A node that nothing leads to hears nothing: its state is the bias.
    """

    name: ClassVar[str] = "graph-attention"
    paper: ClassVar[str] = "Veličković et al. 2018, Graph Attention Networks, arXiv:1710.10903"
    accepts_edges: ClassVar[bool] = True
    test_params: ClassVar[Mapping[str, Any]] = {"layers": 2}

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        layers: Annotated[int, Field(ge=1, le=256)],
        hidden: Annotated[int, Field(ge=1)],
        attention: Blueprint[EdgeAttention],
        heads: Annotated[int, Field(ge=1, le=256)] = 1,
        output: Annotated[int, Field(ge=1)] | None = None,
        output_heads: Annotated[int, Field(ge=1, le=256)] | None = None,
        merge: Literal["mean", "concat"] = "mean",
        activation: Literal["elu", "relu", "none"] = "elu",
        self_loops: bool = True,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.carry = {}
        self.activation = activation
        self.self_loops = self_loops
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList()
        width = input_dim
        for _ in range(layers - 1):
            layer = attention.build(input_dim=width, head_dim=hidden, heads=heads, merge="concat")
            self.layers.append(layer)
            width = layer.output_dim
        last = attention.build(
            input_dim=width,
            head_dim=output or hidden,
            heads=output_heads or heads,
            merge=merge,
        )
        self.layers.append(last)
        if attention.params.get("residual") == "identity" and not any(
            layer.has_identity_residual for layer in self._layers()
        ):
            raise ZooError(
                "residual 'identity' adds a layer's inputs where it keeps the width, which no "
                "layer here does; set residual: linear"
            )
        self.output_dim = self.summary_dim = last.output_dim

    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        edge_list = None if edges is None else EdgeList.of(edges, mask, self_loops=self.self_loops)
        x = inputs
        for index, layer in enumerate(self._layers()):
            x = layer(self.dropout(self._activate(x) if index else x), mask, edge_list)
        states = x.masked_fill(~mask[..., None], 0.0)
        summary = states.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        return Memory(states, mask, summary)

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "none":
            return x
        return F.elu(x) if self.activation == "elu" else F.relu(x)

    def _layers(self) -> list[EdgeAttention]:
        return list(self.layers)  # type: ignore[arg-type]
