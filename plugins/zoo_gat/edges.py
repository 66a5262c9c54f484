"""Edge lists of a batch of graphs: validation, softmax and sums over incoming edges.

Notation: B batch, N nodes, E edges, H heads, D width; M = B * E edges of all graphs together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import full_precision
from zoo_gat.edge_order import EdgeOrder, OrderCache


@dataclass(frozen=True)
class EdgeList:
    """The edges of a batch of graphs as one list, with nodes indexed over the whole batch.

    Shapes:
        target, source [M] from 0 to B * N - 1; valid [M], False for padding and for edges of
        masked nodes; nodes = B * N; graphs = (B, M / B); orders: the sorted orders computed so far.
    """

    target: Tensor
    source: Tensor
    valid: Tensor
    nodes: int
    graphs: tuple[int, int]
    orders: dict[str, EdgeOrder] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_batch(
        cls, edges: Tensor, mask: Tensor, *, self_loops: bool, cache: OrderCache | None = None
    ) -> "EdgeList":
        """Build the list from edges [B, E, 2] and the mask of the nodes [B, N].

        With self_loops, each valid node has exactly one self-loop: listed self-loops are masked and
        one per node is appended, so that M = B * (E + N). A cache keeps the sorted orders of the
        same edges for the next call.
        """
        check_edges(edges, mask)
        B, N = mask.shape
        orders = {} if cache is None else cache.orders(edges, (N, self_loops))
        edges = edges.long() if N else edges[:, :0].long()
        valid = (edges >= 0).all(dim=-1)
        if self_loops:
            valid = valid & (edges[..., 0] != edges[..., 1])
            loops = torch.arange(N, device=edges.device)[None, :, None].expand(B, N, 2)
            edges = torch.cat([edges, loops], dim=1)
            valid = torch.cat([valid, torch.ones_like(mask)], dim=1)
        first = torch.arange(B, device=edges.device)[:, None, None] * N
        # Without validation, an index >= N must not refer to a node of the next graph.
        endpoints = edges.clamp(min=0).where(edges < N, B * N) + first
        source, target = endpoints.flatten(0, 1).T.contiguous().unbind()
        valid_nodes = mask.flatten()
        valid = valid.flatten() & valid_nodes[source] & valid_nodes[target]
        return cls(target, source, valid, B * N, (B, edges.shape[1]), orders)

    @property
    def by_target(self) -> EdgeOrder:
        """The edges sorted by target, computed at the first use."""
        return self._order("target", self.target)

    @property
    def by_source(self) -> EdgeOrder:
        """The edges sorted by source, computed at the first use."""
        return self._order("source", self.source)

    def _order(self, name: str, nodes: Tensor) -> EdgeOrder:
        if name not in self.orders:
            self.orders[name] = EdgeOrder.sort(nodes, self.nodes)
        return self.orders[name]

    def softmax(self, scores: Tensor) -> Tensor:
        """Compute the softmax of scores [M, H] over the incoming edges of each node."""
        logits = full_precision(scores).masked_fill(~self.valid[:, None], float("-inf"))
        highest = logits.new_full((self.nodes, logits.shape[1]), torch.finfo(logits.dtype).min)
        target_index = self.target[:, None].expand_as(logits)
        highest = highest.scatter_reduce(0, target_index, logits.detach(), "amax")
        exp_scores = (logits - highest.index_select(0, self.target)).exp()  # 0 for masked edges
        total = self.scatter_sum(exp_scores).clamp(min=torch.finfo(logits.dtype).tiny)
        return (exp_scores / total.index_select(0, self.target)).to(scores.dtype)

    def scatter_sum(self, messages: Tensor) -> Tensor:
        """Sum messages [M, *] over the incoming edges of each node: [nodes, *]."""
        terms = full_precision(messages)  # half precision is not enough for sums of many edges
        zeros = terms.new_zeros(self.nodes, *terms.shape[1:])
        return zeros.index_add(0, self.target, terms).to(messages.dtype)

    def unflatten_batch(self, values: Tensor) -> Tensor:
        """Reshape values [M, H] to [B, H, E]."""
        return values.reshape(*self.graphs, values.shape[-1]).transpose(1, 2)


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
    check_edges(edges.cpu(), torch.ones(features.shape[:2], dtype=torch.bool))


def _check_indices(edges: Tensor, mask: Tensor) -> None:
    padding = (edges == -1).all(dim=-1)
    invalid = (((edges < 0) | (edges >= mask.shape[1])).any(dim=-1) & ~padding).nonzero()
    if len(invalid):
        graph, edge = invalid[0].tolist()
        raise ZooError(
            f"edge {edge} of graph {graph} is {edges[graph, edge].tolist()}, but nodes are 0 to "
            f"{mask.shape[1] - 1} (use [-1, -1] for padding)"
        )
