"""Laws of models whose inputs are graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.interfaces import BatchSchema
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, compose_model, example_batch


def node_permutation(config: Configuration) -> None:
    """For models of graphs, whose batch has edges, pairs of indices of nodes: permuting the nodes
    permutes the logits of the nodes, and does not change the logits of the graph."""
    model = compose_model(config)
    schema = model.batch_schema() or {}
    edges = (field for field in schema.values() if len(field.dims or ()) == 3)
    dim = next((field.below for field in edges if isinstance(field.below, str)), None)
    if dim is None:
        raise NotApplicable("its batch has no edges")
    batch = example_batch(model)
    nodes = next(
        batch[key].shape[field.dims.index(dim)]
        for key, field in schema.items()
        if key in batch and field.dims and dim in field.dims
    )
    order = torch.arange(nodes).roll(2).flip(0)  # the old index of each new node
    expected, permuted = model(batch), model(_permute(schema, batch, dim, order))
    logits = expected.logits[:, order] if expected.logits.shape[1] == nodes else expected.logits
    assert_close(permuted.logits, logits, "logits of permuted nodes", tolerance=1e-4)


def _permute(
    schema: BatchSchema, batch: dict[str, Tensor], dim: str, order: Tensor
) -> dict[str, Tensor]:
    """Return the same graphs with their nodes in another order."""
    permuted = {}
    for key, tensor in batch.items():
        field = schema[key]
        for axis, name in enumerate(field.dims or ()):
            tensor = tensor.index_select(axis, order) if name == dim else tensor
        if field.below == dim:
            tensor = order.argsort()[tensor.clamp(min=0)].where(tensor >= 0, tensor)
        permuted[key] = tensor
    return permuted


MODEL_LAWS = (Law("node-permutation", node_permutation),)
