"""Node classifier."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Encoder,
    OutputSchema,
    TensorSchema,
    WidthConflict,
    rename_params,
)
from zoo_gat.graph_batch import build_graph_encoder, graph_schema, random_graphs


class NodeClassifier(Model):
    r"""Node classifier: embedding, graph encoder and a linear layer over each node.

    .. math:: p(y_i) = \mathrm{softmax}(h_i) \quad \text{or} \quad \mathrm{softmax}(W h_i + b)

    Paper: Veličković et al. 2018, section 3.3, where the last layer's states are the logits.

    Args:
        features: width of the node features.
        encoder: encodes nodes and edges.
        classes: number of classes.
        readout: 'linear' computes the logits from the states with a linear layer; 'states' uses
            the states as logits.
        multi_label: whether a node can have several classes; targets are then 0 or 1 per class.

    Shapes:
        batch {features [B, N, features], edges [B, E, 2] padded with -1, target [B, N] (multi-label
        [B, N, classes]), optional mask [B, N] of the nodes in the loss} -> logits [B, N, classes].
        In a batch of graphs of different sizes, the mask excludes padding nodes, which have no
        edges.
    """

    name: ClassVar[str] = "node-classifier"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    version: ClassVar[int] = 2
    paper: ClassVar[str] = "Veličković et al. 2018, Graph Attention Networks, arXiv:1710.10903"
    test_params: ClassVar[Mapping[str, Any]] = {
        "encoder": {
            "type": "graph-attention",
            "layers": 2,
            "hidden": 4,
            "heads": 2,
            "output": 8,
            "attention": {"scorer": "zoo-testing:tiny"},
        }
    }

    def __init__(
        self,
        *,
        features: Annotated[int, Field(ge=1)],
        encoder: Blueprint[Encoder],
        classes: Annotated[int, Field(ge=1)],
        readout: Literal["linear", "states"] = "linear",
        multi_label: bool = False,
    ) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        self.readout, self.multi_label = readout, multi_label
        self.encoder = build_graph_encoder(encoder, features)
        width = self.encoder.output_dim
        if readout == "states" and width != classes:
            raise WidthConflict(
                "readout 'states' requires output_dim = classes; or set readout: linear",
                classes=classes,
                output_dim=width,
            )
        self.out = nn.Linear(width, classes) if readout == "linear" else None

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, read="readout")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        features, target = batch["features"], batch["target"]
        nodes = torch.ones(features.shape[:2], dtype=torch.bool, device=features.device)
        mask = batch.get("mask", nodes)
        states = self.encoder(features, nodes, batch["edges"]).states
        logits = states if self.out is None else self.out(states)
        return Outputs(logits, target, mask)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        dims = ("B", "N")
        target = TensorSchema(dims, "integer", below=self.classes, minimum=None)
        if self.multi_label:
            target = TensorSchema((*dims, self.classes))
        return {
            **graph_schema(self.features),
            "target": target._replace(optional=inference),
            "mask": TensorSchema(dims, "bool", optional=True),
        }

    def output_schema(self) -> OutputSchema:
        targets: Literal["class", "multi-label"] = "multi-label" if self.multi_label else "class"
        return OutputSchema(logits="position", targets=targets)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Return a random batch in which each node has three random incoming edges."""
        weight = next(self.parameters())
        graphs = random_graphs(batch, length, self.features, generator, weight)
        device = generator.device if generator else weight.device
        shape = (batch, length, self.classes) if self.multi_label else (batch, length)
        labels = torch.randint(
            0, 2 if self.multi_label else self.classes, shape, generator=generator, device=device
        )
        return {**graphs, "target": labels.to(weight if self.multi_label else weight.device)}
