"""Edges as one list, sorted, in chunks, and kept for the next call."""

import pytest
import torch

from zoo.plugin import Blueprint
from zoo_fast.gat import edge_order
from zoo_fast.gat.edge_lists import KeptEdges
from zoo_fast.gat.edge_order import EdgeChunks
from zoo_fast.gat.edge_orders import edge_orders
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat
from zoo_gat.graph_attention import GraphAttention


def test_the_index_is_kept_for_the_same_edges_only():
    kept, mask = KeptEdges(), torch.ones(1, 3, dtype=torch.bool)
    attention = Blueprint.of(EdgeAttention, scorer=Blueprint.of(Gat))
    edges = torch.tensor([[[0, 1], [2, 0]]])

    def index(edges, self_loops=True):
        encoder = Blueprint.of(
            GraphAttention, layers=1, hidden=2, attention=attention, self_loops=self_loops
        ).build(input_dim=2)
        return kept.build_edges(encoder, edges, mask).index

    first = index(edges)
    assert index(edges) is first
    assert index(edges.clone()) is not first
    changed = index(edges)
    edges[0, 0, 1] = 2
    assert index(edges) is not changed
    assert index(edges, self_loops=False) is not index(edges)


def test_edges_are_sorted_without_padding_and_repeated_self_loops():
    edges = torch.tensor([[[2, 1], [-1, -1], [0, 0], [1, 2]], [[0, 2], [2, 2], [1, 0], [0, 2]]])
    mask = torch.ones(2, 3, dtype=torch.bool)
    index = EdgeList.from_batch(edges, mask, self_loops=True).index
    orders = edge_orders(index)
    assert edge_orders(index) is orders
    order = orders.by_target
    assert order.first_edge.tolist() == [0, 1, 3, 5, 7, 8, 11]
    assert order.neighbours[:11].tolist() == [0, 2, 1, 1, 2, 4, 3, 4, 3, 3, 5]
    assert index.target[orders.ids_by_target[:11]].tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5]
    assert orders.by_source.first_edge.tolist() == [0, 1, 3, 5, 8, 10, 11]


@pytest.mark.parametrize("degrees", [[0, 3, 4, 0], [9, 1, 5], [13], [0], [5, 5, 4, 8]])
def test_chunks_cover_the_edges_of_each_node(monkeypatch, degrees):
    monkeypatch.setattr(edge_order, "CHUNK", 4)
    first_edge = torch.tensor([0, *degrees]).cumsum(0)
    edges = int(first_edge[-1])
    split = EdgeChunks.split(first_edge, edges)
    positions = []
    covered = [[] for _ in degrees]
    for node, start, end, position in split.chunks.tolist():
        if node == len(degrees):
            continue
        assert end - start <= 4
        covered[node].extend(range(start, end))
        assert (position < 0) == (degrees[node] <= 4)
        positions += [(position, node)] * (position >= 0)
    for node, listed in enumerate(covered):
        assert listed == list(range(int(first_edge[node]), int(first_edge[node + 1])))
    assert [position for position, _ in positions] == list(range(len(positions)))
    ranges = split.partial_ranges.tolist()
    assert len(positions) <= len(ranges)
    summed = [
        (position, node)
        for first, (node, end) in enumerate(ranges)
        for position in range(first, max(first, end))
    ]
    assert summed == positions
