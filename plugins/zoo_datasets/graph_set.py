"""Several graphs with a class each, in a graph table, a node table and an edge table.

Notation: G graphs, N nodes and E edges of all graphs together, F features.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from zoo import DataError
from zoo.plugin import Array, Example, Examples
from zoo_datasets.csv_rows import CsvRows, require_columns
from zoo_datasets.graph_files import SPLITS, read_edges, read_nodes, read_split


class GraphSet(NamedTuple):
    """Graphs with a class each.

    Attributes:
        features: [N, F].
        edges: [E, 2], source and target, both in one graph.
        graph_of: the graph of each node [N].
        labels: the G names of the classes, empty for graphs without one; None if the table has no
            column for them.
        split: [G], index in `SPLITS`.
        origins: where each graph is in the graph table.
        path: the graph table.
    """

    features: Array
    edges: Array
    graph_of: Array
    labels: list[str] | None
    split: Array
    origins: list[str]
    path: str

    def select(self, split: str, *, evaluation: bool) -> Array:
        """Return the indices of the graphs of a split; ``all``: those with a label, or in
        evaluation every graph of a table without labels."""
        if self.labels is None:
            found = np.full(len(self.origins), evaluation)
        else:
            found = np.array([label != "" for label in self.labels])
        if split != "all":
            in_split = self.split == SPLITS.index(split)
            unlabelled = np.flatnonzero(in_split & ~found)
            if len(unlabelled):
                origin = self.origins[unlabelled[0]]
                raise DataError(f"a graph of '{split}' has no label", origin)
            found = in_split
        if not found.any():
            graphs = "with a label" if split == "all" else f"of the split '{split}'"
            raise DataError(f"the table contains no graphs {graphs}", self.path)
        return np.flatnonzero(found)


def read_graph_set(nodes: str, edges: str, graphs: str, *, labelled: bool) -> GraphSet:
    """Read graphs from three tables.

    Args:
        labelled: whether the graph table must have the columns ``label`` and ``split``.
    """
    rows = CsvRows(graphs)
    require_columns(rows, ["id", "label", "split"] if labelled else ["id"])
    numbers: dict[str, int] = {}
    labels, split = [], []
    for index, row in enumerate(rows):
        if row["id"] in numbers:
            raise DataError(f"graph '{row['id']}' occurs twice", rows.origin(index))
        numbers[row["id"]] = index
        labels.append(row.get("label", ""))
        split.append(read_split(row.get("split", ""), rows.origin(index)))
    node_rows = CsvRows(nodes)
    require_columns(node_rows, ["id", "graph"])
    table = read_nodes(node_rows, other=("id", "graph", "label", "split"))
    graph_of = np.zeros(len(node_rows), np.int64)
    for index, graph in enumerate(table.other["graph"]):
        if graph not in numbers:
            raise DataError(f"no graph '{graph}' in the graph table", node_rows.origin(index))
        graph_of[index] = numbers[graph]
    origins = [rows.origin(index) for index in range(len(rows))]
    empty = np.flatnonzero(np.bincount(graph_of, minlength=len(rows)) == 0)
    if len(empty):
        raise DataError("the graph has no nodes in the node table", origins[empty[0]])
    return GraphSet(
        table.features,
        _read_edges_within(CsvRows(edges), table.numbers, graph_of),
        graph_of,
        labels if "label" in rows.columns else None,
        np.array(split, np.int8),
        origins,
        str(rows.path),
    )


def _read_edges_within(rows: CsvRows, numbers: dict[str, int], graph_of: Array) -> Array:
    """Return edges [E, 2]; raise DataError if an edge is between graphs."""
    edges = np.zeros((len(rows), 2), np.int64)
    for index, (source, target) in enumerate(read_edges(rows, numbers)):
        if graph_of[source] != graph_of[target]:
            raise DataError("the edge is between nodes of different graphs", rows.origin(index))
        edges[index] = source, target
    return edges


class GraphExamples(Examples):
    """One example for each of the selected graphs.

    Args:
        graphs: the graphs.
        selected: indices of graphs.
        features: [N, F], as the model takes them.
        edges: [E, 2], as the model takes them.
    """

    def __init__(self, graphs: GraphSet, selected: Array, features: Array, edges: Array) -> None:
        count = len(graphs.origins)
        order = np.argsort(graphs.graph_of, kind="stable")
        self._first_node = _first(graphs.graph_of, count)
        position = np.empty(len(order), np.int64)  # of a node in its graph
        position[order] = np.arange(len(order))
        position -= self._first_node[graphs.graph_of]
        owner = graphs.graph_of[edges[:, 0]]
        self._first_edge = _first(owner, count)
        self._features = features[order]
        self._edges = position[edges[np.argsort(owner, kind="stable")]]
        self._selected = selected
        self._labels = graphs.labels or [""] * count
        self._origins = graphs.origins

    def __len__(self) -> int:
        return len(self._selected)

    def __getitem__(self, index: int) -> Example:
        graph = self._selected[index]
        nodes, edges = (slice(*f[graph : graph + 2]) for f in (self._first_node, self._first_edge))
        return {
            "features": self._features[nodes],
            "edges": self._edges[edges],
            "target": self._labels[graph],
        }

    def sizes(self) -> Sequence[int]:
        counts: list[int] = np.diff(self._first_node)[self._selected].tolist()
        return counts

    def origin(self, index: int) -> str:
        return self._origins[int(self._selected[index])]


def _first(owner: Array, count: int) -> Array:
    """Return the index of the first element of each graph if they are sorted, [G + 1]."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])
