"""The inputs that models of graphs share: node features and edges."""

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import BatchSchema, Blueprint, Encoder, TensorSchema, forbid_stochastic


def build_graph_encoder(encoder: Blueprint[Encoder], features: int) -> Encoder:
    """Build an encoder of nodes with this number of features; raise ZooError if it has no edges."""
    if not encoder.cls.accepts_edges:
        raise ZooError(f"encoder '{encoder.label}' does not accept edges")
    built = encoder.build(input_dim=features)
    forbid_stochastic(built, "the encoder")
    return built


def graph_schema(features: int) -> BatchSchema:
    """Return the schema of node features [B, N, features] and edges [B, E, 2]."""
    return {
        "features": TensorSchema(("B", "N", features), "float"),
        "edges": TensorSchema(("B", "E", 2), "integer", below="N", minimum=-1, pad=-1, empty=True),
    }


def random_graphs(
    batch: int, nodes: int, features: int, generator: torch.Generator | None, like: Tensor
) -> dict[str, Tensor]:
    """Return random features and edges, three incoming edges for each node.

    Args:
        like: a weight, which has the device and the dtype of the features.
    """
    device = generator.device if generator else like.device
    values = torch.randn(batch, nodes, features, generator=generator, device=device)
    source = torch.randint(0, nodes, (batch, 3, nodes), generator=generator, device=device)
    target = torch.arange(nodes, device=device).expand_as(source)
    return {
        "features": values.to(like),
        "edges": torch.stack([source, target], dim=-1).flatten(1, 2).to(like.device),
    }
