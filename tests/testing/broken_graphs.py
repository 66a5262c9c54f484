"""Encoders and models of graphs that violate a law, and the valid ones they are based on."""

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import Memory
from zoo_gat.graph_attention import GraphAttention
from zoo_gat.graph_classifier import GraphClassifier
from zoo_gat.node_classifier import NodeClassifier


class DependsOnNodeOrder(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        index = torch.arange(inputs.shape[1], dtype=inputs.dtype)[:, None]
        return super().forward(inputs + index, mask, edges)


class DependsOnEdgeOrder(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        memory = super().forward(inputs, mask, edges)
        states = memory.states
        for source, target in [] if edges is None else edges[0].tolist():
            if source >= 0:
                states = states.index_copy(1, torch.tensor([target]), states[:, [source]])
        return Memory(states, mask, memory.summary)


class UsesPaddedEdges(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        if edges is not None:
            edges = edges.where(edges >= 0, torch.tensor([1, 0]))
        return super().forward(inputs, mask, edges)


class IgnoresEdges(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        return super().forward(inputs, mask, None if edges is None else edges[:, :0])


class FullyConnected(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        return super().forward(inputs, mask)


class ReversedEdges(GraphAttention):
    def forward(self, inputs: Tensor, mask: Tensor, edges: Tensor | None = None) -> Memory:
        return super().forward(inputs, mask, None if edges is None else edges.flip(-1))


class NodesByPosition(NodeClassifier):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        position = torch.arange(outputs.logits.shape[1])[:, None]
        return Outputs(outputs.logits + position, outputs.targets, outputs.mask)


class ReadsFirstNode(GraphClassifier):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        first = batch["features"][:, :1].sum(dim=-1, keepdim=True)
        return Outputs(outputs.logits + first, outputs.targets, outputs.mask)


class PoolsPadding(GraphClassifier):
    def forward(self, batch: Batch) -> Outputs:
        return super().forward({key: value for key, value in batch.items() if key != "mask"})


# (law, broken component, valid component)
BROKEN = [
    ("node-permutation", DependsOnNodeOrder, GraphAttention),
    ("node-permutation", DependsOnEdgeOrder, GraphAttention),
    ("node-permutation", UsesPaddedEdges, GraphAttention),
    ("edge-locality", IgnoresEdges, GraphAttention),
    ("edge-locality", FullyConnected, GraphAttention),
    ("edge-locality", ReversedEdges, GraphAttention),
    ("node-permutation", NodesByPosition, NodeClassifier),
    ("node-permutation", ReadsFirstNode, GraphClassifier),
    ("padding-invariance", PoolsPadding, GraphClassifier),
]
