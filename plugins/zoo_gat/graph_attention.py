"""Graph attention encoder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Encoder, FromParent, Memory
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList


@dataclass(frozen=True, kw_only=True)
class OutputLayer:
    """The last layer, where it differs from the others.

    Args:
        output: width of a head; hidden if not set.
        output_heads: number of heads; heads if not set.
        merge: how the heads are combined.
    """

    output: Annotated[int, Field(ge=1)] | None = None
    output_heads: Annotated[int, Field(ge=1, le=256)] | None = None
    merge: Literal["concat", "mean"] = "mean"


class GraphAttention(Encoder):
    r"""Graph attention encoder: stacked attention layers over edges.

    .. math:: h_i \leftarrow \mathrm{ELU}\Big( \big\Vert_{k=1}^{K}
        \sum_{j \to i} \alpha_{ij}^k W^k h_j \Big)

    Paper: Veličković et al. 2018, equations 4 to 6. Scorer `gatv2` and project 'kv' give the layers
    of Brody et al. 2022; `scaled-dot`, 'qkv' and a linear residual those of Shi et al. 2021.

    Args:
        input_dim: width of the node features.
        layers: number of layers.
        hidden: width of a head.
        attention: attention of each layer.
        heads: number of heads, concatenated in all layers but the last.
        output: width of a head in the last layer; hidden if not set.
        output_heads: number of heads in the last layer; heads if not set.
        merge: how the heads of the last layer are combined.
        activation: activation after each layer but the last.
        self_loops: whether each node attends to itself, in addition to the edges.
        residual_layers: the layers to which the residual of the attention applies: 'all', or
            'inner' for all but the first and the last, as in the authors' code.
        dropout: dropout probability of the inputs of each layer.

    Shapes:
        inputs [B, N, D], mask [B, N], edges [B, E, 2] of (source, target), padded with -1 -> states
        [B, N, output_dim]; the summary is their mean. Without edges, each node attends to all
        nodes. A node without incoming edges outputs the bias.
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
        output_layer: OutputLayer,
        activation: Literal["elu", "relu", "none"] = "elu",
        self_loops: bool = True,
        residual_layers: Literal["all", "inner"] = "all",
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.carry = {}
        self.input_dim, self.hidden, self.heads = input_dim, hidden, heads
        self.output = output_layer.output or hidden
        self.output_heads = output_layer.output_heads or heads
        self.activation, self.self_loops = activation, self_loops
        self.dropout = nn.Dropout(dropout)
        outer = attention
        if residual_layers == "inner":
            _require_inner_layer(attention, layers)
            outer = replace(attention, params={**attention.params, "residual": "none"})
        self.layers = nn.ModuleList()
        width = input_dim
        for index in range(layers - 1):
            blueprint = attention if index else outer
            layer = blueprint.build(input_dim=width, head_dim=hidden, heads=heads, merge="concat")
            self.layers.append(layer)
            width = layer.output_dim
        last = outer.build(
            input_dim=width,
            head_dim=self.output,
            heads=self.output_heads,
            merge=output_layer.merge,
        )
        self.layers.append(last)
        if attention.params.get("residual") == "identity" and not any(
            layer.has_identity_residual for layer in self._layers()
        ):
            raise ZooError(
                "residual 'identity' requires a layer with equal input and output widths, but no "
                "layer has them; set residual: linear"
            )
        self.output_dim = self.summary_dim = last.output_dim

    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        edge_list = None if edges is None else self.build_edges(edges, mask)
        x = inputs
        for index, layer in enumerate(self._layers()):
            x = layer(self.dropout(self._activate(x) if index else x), mask, edge_list)
        states = x.masked_fill(~mask[..., None], 0.0)
        summary = states.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        return Memory(states, mask, summary)

    def build_edges(self, edges: Tensor, mask: Tensor) -> EdgeList:
        """Return the edges [B, E, 2] of graphs with the mask of the nodes [B, N] as one list."""
        return EdgeList.from_batch(edges, mask, self_loops=self.self_loops)

    def _activate(self, x: Tensor) -> Tensor:
        if self.activation == "none":
            return x
        return F.elu(x) if self.activation == "elu" else F.relu(x)

    def _layers(self) -> list[EdgeAttention]:
        return list(self.layers)  # type: ignore[arg-type]


def _require_inner_layer(attention: Blueprint[EdgeAttention], layers: int) -> None:
    """Raise ZooError if the attention has a residual but no layer is an inner one."""
    if attention.params.get("residual", "none") != "none" and layers < 3:
        raise ZooError(
            f"residual_layers 'inner' requires at least 3 layers, but there are {layers}; set "
            "residual_layers: all, or residual: none"
        )
