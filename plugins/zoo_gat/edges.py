"""Edge lists: checked, flattened over the batch, and summed up by the nodes they lead to.

Letters: B batch, N nodes, E edges, H heads, D width; M = B * E edges of all graphs together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import full_precision


@dataclass(frozen=True)
class EdgeList:
    """The edges of a batch of graphs as one list over all of their nodes.

    Shapes:
        target, source [M] in 0..B*N-1; open [M], False where an edge is none: padding, or one
        that touches a node which is not real; nodes = B*N; graphs = (B, M / B).
    """

    target: Tensor
    source: Tensor
    open: Tensor
    nodes: int
    graphs: tuple[int, int]

    @classmethod
    def of(cls, edges: Tensor, mask: Tensor, *, self_loops: bool) -> "EdgeList":
        """From edges [B, E, 2] of nodes with a mask [B, N].

        With self-loops every real node gets one, whether or not it is listed: the listed ones are
        closed, then one a node follows, so that M = B * (E + N).
        """
        check_edges(edges, mask)
        B, N = mask.shape
        edges = edges.long() if N else edges[:, :0].long()
        valid = (edges >= 0).all(dim=-1)
        if self_loops:
            valid = valid & (edges[..., 0] != edges[..., 1])
            loops = torch.arange(N, device=edges.device)[None, :, None].expand(B, N, 2)
            edges = torch.cat([edges, loops], dim=1)
            valid = torch.cat([valid, torch.ones_like(mask)], dim=1)
        first = torch.arange(B, device=edges.device)[:, None, None] * N
        # Where nobody could look at the numbers, one too high must not name the next graph's node.
        endpoints = edges.clamp(min=0).where(edges < N, B * N) + first
        source, target = endpoints.flatten(0, 1).T.contiguous().unbind()  # read often
        real = mask.flatten()
        valid = valid.flatten() & real[source] & real[target]
        return cls(target, source, valid, B * N, (B, edges.shape[1]))

    def softmax(self, scores: Tensor) -> Tensor:
        """Weights [M, H] of the edges into each node, which sum to 1 where there is any."""
        wide = full_precision(scores).masked_fill(~self.open[:, None], float("-inf"))
        highest = wide.new_full((self.nodes, wide.shape[1]), torch.finfo(wide.dtype).min)
        target_index = self.target[:, None].expand_as(wide)
        highest = highest.scatter_reduce(0, target_index, wide.detach(), "amax")
        exp_scores = (wide - highest.index_select(0, self.target)).exp()  # exactly 0 where closed
        total = self.scatter_sum(exp_scores).clamp(min=torch.finfo(wide.dtype).tiny)
        return (exp_scores / total.index_select(0, self.target)).to(scores.dtype)

    def scatter_sum(self, messages: Tensor) -> Tensor:
        """What arrives at each node: [M, *] -> [nodes, *]. An edge listed twice counts twice."""
        wide = full_precision(messages)  # sums over many edges lose too much in half
        zeros = wide.new_zeros(self.nodes, *wide.shape[1:])
        return zeros.index_add(0, self.target, wide).to(messages.dtype)

    def unflatten_batch(self, values: Tensor) -> Tensor:
        """One value an edge and head, graph by graph: [M, H] -> [B, H, E]."""
        return values.reshape(*self.graphs, values.shape[-1]).transpose(1, 2)


def check_edges(edges: Tensor, mask: Tensor) -> None:
    """Raise ZooError unless edges are whole numbers [B, E, 2], each naming two nodes.

    The numbers themselves are looked at on a CPU only and not while compiling, since a GPU would
    have to be waited for; there a faulty one trips torch's own assertion, and `check_graph` says
    more beforehand.
    """
    whole = not (edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool)
    if not whole:
        raise ZooError(f"edges must be whole numbers, not {edges.dtype}")
    B = mask.shape[0]
    if edges.dim() != 3 or edges.shape[0] != B or edges.shape[2] != 2:
        raise ZooError(f"edges must be [{B}, E, 2] for {B} graphs, not {list(edges.shape)}")
    if edges.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_indices(edges, mask)


def check_graph(batch: Mapping[str, Tensor]) -> None:
    """Raise ZooError if the edges of a batch {features [B, N, F], edges} name no nodes of it.

    For whoever makes batches; waits for the device where the batch is.
    """
    features, edges = batch["features"], batch["edges"]
    if features.dim() != 3:
        raise ZooError(f"features must be [B, N, F], not {list(features.shape)}")
    check_edges(edges.cpu(), torch.ones(features.shape[:2], dtype=torch.bool))


def _check_indices(edges: Tensor, mask: Tensor) -> None:
    padding = (edges == -1).all(dim=-1)
    invalid = (((edges < 0) | (edges >= mask.shape[1])).any(dim=-1) & ~padding).nonzero()
    if len(invalid):
        graph, edge = invalid[0].tolist()
        raise ZooError(
            f"edge {edge} of graph {graph} is {edges[graph, edge].tolist()}, but its nodes are "
            f"numbered 0 to {mask.shape[1] - 1}; [-1, -1] is padding"
        )
