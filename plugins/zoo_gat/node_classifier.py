"""Node classifier: a name for every node of a graph."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import Blueprint, Encoder, WidthConflict, forbid_stochastic


class NodeClassifier(Model):
    r"""Names every node of a graph, knowing all nodes and edges but only some of the names.

    .. math:: p(y_i) = \mathrm{softmax}(h_i) \quad \text{or} \quad \mathrm{softmax}(W h_i + b)

    Paper: Veličković et al. 2018, section 3.3, where the last layer's states are the logits.

    Args:
        features: width of a node's features.
        encoder: reads nodes and edges.
        classes: how many names there are.
        read: a linear map of the states gives the logits, or the states are the logits.
        multi_label: a node can have several names at once; targets are yes or no for each.

    Shapes:
        batch {features [B, N, features], edges [B, E, 2] padded with -1, target [B, N] or, with
        several names, [B, N, classes], mask [B, N], True for the nodes that count, all if it is
        not there} -> logits [B, N, classes]. In a batch of graphs of unequal sizes the mask leaves
        out the padding, to which no edge leads.
    """

    name: ClassVar[str] = "node-classifier"
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
        read: Literal["linear", "states"] = "linear",
        multi_label: bool = False,
    ) -> None:
        super().__init__()
        if not encoder.cls.accepts_edges:
            raise ZooError(f"encoder '{encoder.label}' reads sequences and knows nothing of edges")
        self.features, self.classes, self.multi_label = features, classes, multi_label
        self.encoder = encoder.build(input_dim=features)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.output_dim
        if read == "states" and width != classes:
            raise WidthConflict(
                "the encoder's states are the logits, one a class; or set read: linear",
                classes=classes,
                output_dim=width,
            )
        self.out = nn.Linear(width, classes) if read == "linear" else None

    def forward(self, batch: Batch) -> Outputs:
        features, target = batch["features"], batch["target"]
        if features.dim() != 3 or features.shape[2] != self.features:
            raise ZooError(f"features must be [B, N, {self.features}], not {list(features.shape)}")
        nodes = torch.ones(features.shape[:2], dtype=torch.bool, device=features.device)
        mask = batch.get("mask", nodes)
        names = (self.classes,) if self.multi_label else ()
        for name, tensor, expected in (
            ("target", target, (*nodes.shape, *names)),
            ("mask", mask, nodes.shape),
        ):
            if tensor.shape != expected:
                raise ZooError(f"{name} must be {list(expected)}, not {list(tensor.shape)}")
        states = self.encoder(features, nodes, batch["edges"]).states
        logits = states if self.out is None else self.out(states)
        return Outputs(logits, target, mask)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Each node is led to by three at random, so that there is something to weigh."""
        weight = next(self.parameters())
        where = generator.device if generator else weight.device
        features = torch.randn(batch, length, self.features, generator=generator, device=where)
        source = torch.randint(0, length, (batch, 3, length), generator=generator, device=where)
        target = torch.arange(length, device=where).expand_as(source)
        shape = (batch, length, self.classes) if self.multi_label else (batch, length)
        names = torch.randint(
            0, 2 if self.multi_label else self.classes, shape, generator=generator, device=where
        )
        return {
            "features": features.to(weight),
            "edges": torch.stack([source, target], dim=-1).flatten(1, 2).to(weight.device),
            "target": names.to(weight if self.multi_label else weight.device),
        }
