"""Edge lists of a batch of graphs: validation, softmax and sums over incoming edges.

Notation: B batch, N nodes, E edges, H heads, D width; M = B * E edges of all graphs together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import full_precision
from zoo_gat.edge_index import EdgeIndex


@dataclass(frozen=True)
class EdgeList:
    """The edges of a batch of graphs and the mask of their nodes.

    Shapes:
        index: M edges over B * N nodes; is_valid_node [B * N].
    """

    index: EdgeIndex
    is_valid_node: Tensor

    @classmethod
    def from_batch(
        cls,
        edges: Tensor,
        mask: Tensor,
        *,
        self_loops: bool,
    ) -> "EdgeList":
        """Build the list from edges [B, E, 2] and the mask of the nodes [B, N].

        With self_loops, each valid node has exactly one self-loop, so that M = B * (E + N).
        """
        check_edges(edges, mask)
        index = EdgeIndex.from_batch(edges, mask.shape[1], self_loops=self_loops)
        return cls(index, mask.flatten())

    @property
    def valid(self) -> Tensor:
        """Whether an edge is listed and both of its nodes are valid: [M]."""
        nodes = self.is_valid_node
        return self.index.listed & nodes[self.index.source] & nodes[self.index.target]

    def softmax(self, scores: Tensor) -> Tensor:
        """Compute the softmax of scores [M, H] over the incoming edges of each node."""
        logits = full_precision(scores).masked_fill(~self.valid[:, None], float("-inf"))
        highest = logits.new_full(
            (self.index.nodes, logits.shape[1]), torch.finfo(logits.dtype).min
        )
        target_index = self.index.target[:, None].expand_as(logits)
        highest = highest.scatter_reduce(0, target_index, logits.detach(), "amax")
        exp_scores = (
            logits - highest.index_select(0, self.index.target)
        ).exp()  # 0 for masked edges
        total = self.scatter_sum(exp_scores).clamp(min=torch.finfo(logits.dtype).tiny)
        return (exp_scores / total.index_select(0, self.index.target)).to(scores.dtype)

    def scatter_sum(self, messages: Tensor) -> Tensor:
        """Sum messages [M, *] over the incoming edges of each node: [nodes, *]."""
        terms = full_precision(messages)  # half precision is not enough for sums of many edges
        zeros = terms.new_zeros(self.index.nodes, *terms.shape[1:])
        return zeros.index_add(0, self.index.target, terms).to(messages.dtype)

    def unflatten_batch(self, values: Tensor) -> Tensor:
        """Reshape values [M, H] to [B, H, E]."""
        return values.reshape(*self.index.graphs, values.shape[-1]).transpose(1, 2)


def check_edges(edges: Tensor, mask: Tensor) -> None:
    """Raise ZooError unless edges are integers [B, E, 2] that are valid node indices.

    The indices are checked on the CPU only, and not while compiling: a GPU would synchronise.
    There, an invalid index triggers torch's assertion; use `check_graph` for a clear error.
    """
    is_integer = not (edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool)
    if not is_integer:
        raise ZooError(f"edges must be integers, not {edges.dtype}")
    B = mask.shape[0]
    if edges.dim() != 3 or edges.shape[0] != B or edges.shape[2] != 2:
        raise ZooError(f"edges must have shape [{B}, E, 2], not {list(edges.shape)}")
    if edges.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_indices(edges, mask)


def check_graph(batch: Mapping[str, Tensor]) -> None:
    """Raise ZooError if a batch {features [B, N, F], edges [B, E, 2]} has invalid edges.

    Synchronises with the device of the batch.
    """
    features, edges = batch["features"], batch["edges"]
    if features.dim() != 3:
        raise ZooError(f"features must have shape [B, N, F], not {list(features.shape)}")
    check_edges(edges.cpu(), torch.ones(features.shape[:2], dtype=torch.bool, device="cpu"))


def _check_indices(edges: Tensor, mask: Tensor) -> None:
    padding = (edges == -1).all(dim=-1)
    invalid = (((edges < 0) | (edges >= mask.shape[1])).any(dim=-1) & ~padding).nonzero()
    if len(invalid):
        graph, edge = invalid[0].tolist()
        raise ZooError(
            f"edge {edge} of graph {graph} is {edges[graph, edge].tolist()}, but nodes are 0 to "
            f"{mask.shape[1] - 1} (use [-1, -1] for padding)"
        )
