"""Graph classifier."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import BatchSchema, Blueprint, Encoder, OutputSchema, Scorer, TensorSchema
from zoo_gat.graph_batch import build_graph_encoder, graph_schema, random_graphs
from zoo_gat.node_classifier import NodeClassifier
from zoo_gat.pooling import AttentionPooling, NodePooling


class GraphClassifier(Model):
    r"""Graph classifier: graph encoder, pooling over the nodes, and a linear layer.

    .. math:: p(y) = \mathrm{softmax}(W g + b), \qquad g = \mathrm{pool}_i\, h_i

    Paper: Xu et al. 2019, equation 2.4. A learned query that attends to all elements of a set is
    the pooling of Lee et al. 2019, section 3.2.

    Args:
        features: width of the node features.
        encoder: encodes nodes and edges.
        classes: number of classes.
        pooling: mean or sum of the states of the nodes, the maximum of each feature, or a sum
            weighted by the attention of one learned query.
        scorer: scores the nodes, for pooling 'attention'.

    Shapes:
        batch {features [B, N, features], edges [B, E, 2] padded with -1, target [B], optional mask
        [B, N] of the nodes that are not padding} -> logits [B, 1, classes].
    """

    name: ClassVar[str] = "graph-classifier"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    paper: ClassVar[str] = (
        "Xu et al. 2019, How Powerful are Graph Neural Networks?, arXiv:1810.00826"
    )
    test_params: ClassVar[Mapping[str, Any]] = NodeClassifier.test_params

    def __init__(
        self,
        *,
        features: Annotated[int, Field(ge=1)],
        encoder: Blueprint[Encoder],
        classes: Annotated[int, Field(ge=1)],
        pooling: Literal["mean", "sum", "max", "attention"] = "mean",
        scorer: Blueprint[Scorer] | None = None,
    ) -> None:
        super().__init__()
        self.features, self.classes, self.pooling = features, classes, pooling
        self.encoder = build_graph_encoder(encoder, features)
        width = self.encoder.output_dim
        self.pool = _build_pooling(pooling, scorer, width)
        self.out = nn.Linear(width, classes)

    def forward(self, batch: Batch) -> Outputs:
        features, targets = batch["features"], batch["target"][:, None]
        nodes = torch.ones(features.shape[:2], dtype=torch.bool, device=features.device)
        mask = batch.get("mask", nodes)
        vector = self.pool(self.encoder(features, mask, batch["edges"]).states, mask)  # [B, D]
        return Outputs(
            self.out(vector)[:, None], targets, torch.ones_like(targets, dtype=torch.bool)
        )

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        return {
            **graph_schema(self.features),
            "target": TensorSchema(("B",), "integer", below=self.classes, optional=inference),
            "mask": TensorSchema(("B", "N"), "bool", optional=True),
        }

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="item")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Return random graphs in which each node has three random incoming edges."""
        weight = self.out.weight
        graphs = random_graphs(batch, length, self.features, generator, weight)
        device = generator.device if generator else weight.device
        target = torch.randint(0, self.classes, (batch,), generator=generator, device=device)
        return {**graphs, "target": target.to(weight.device)}


def _build_pooling(
    pooling: Literal["mean", "sum", "max", "attention"], scorer: Blueprint[Scorer] | None, dim: int
) -> NodePooling | AttentionPooling:
    if pooling == "attention":
        if scorer is None:
            raise ZooError(
                "pooling 'attention' requires a scorer of the nodes, for example scorer: dot"
            )
        return AttentionPooling(scorer, dim)
    if scorer is not None:
        raise ZooError(f"pooling '{pooling}' has no scorer; remove it, or set pooling: attention")
    return NodePooling(pooling)
