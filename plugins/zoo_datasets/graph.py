"""Dataset 'graph'."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from zoo import DataError, ZooError
from zoo.plugin import Array, Dataset, Example, Examples, Field, TensorSchema
from zoo_datasets.graph_files import SPLITS, Graph, read_graph_arrays, read_graph_tables
from zoo_datasets.graph_set import GraphExamples, read_graph_set

_NODES = ("B", "N")


class GraphDataset(Dataset):
    """One graph whose nodes have classes, or several graphs with a class each.

    For `node-classifier`, the whole graph is one example; ``split`` selects the nodes in the loss
    and in metrics. The graph is in one file, or in two CSV files. For `graph-classifier`, the
    graphs are in three CSV files; each is an example, and ``split`` selects graphs.

    - ``file``, a ``.npz`` file (also ``.gz``, ``.xz``) with ``features`` [N, F], or a sparse matrix
      in CSR form: ``shape``, ``indptr``, ``indices`` and optional ``values``; ``labels`` [N], -1
      for nodes without a class; ``edges`` [2, E] or [E, 2]; ``idx_train``, ``idx_val`` and
      ``idx_test``, the nodes of each split.
    - ``nodes`` and ``edges``: a node table with the columns ``id``, ``label``, ``split`` (train,
      validation, test or empty) and one column for each feature; an edge table with the columns
      ``source`` and ``target``. With ``split: all``, ``label`` and ``split`` may be missing.
    - ``nodes``, ``edges`` and ``graphs``: a graph table with the columns ``id``, ``label`` and
      ``split``; the node table has the column ``graph``, the ID of its graph, and needs no
      ``label`` or ``split``, which are not used. IDs of nodes are unique in the table.

    An edge that occurs twice, or in both directions of an undirected graph, counts once; other
    columns of the edge table are reported and not used. Self-loops are added by the encoder
    (``self_loops`` of `graph-attention`).

    Args:
        file: the ``.npz`` file.
        nodes: the node table, in place of ``file``.
        edges: the edge table.
        graphs: the graph table, if each graph has a class.
        split: nodes in the mask, or graphs; ``all``: those with a label. For prediction with
            ``all``, a graph table without the column ``label`` gives every graph.
        undirected: whether each edge is also used in the other direction.
        normalise: whether the features of each node are divided by their sum.

    Fields:
        features: array, float32 [N, F]. edges: array, int64 [E, 2], source and target. target:
        array, int64 [N], of ``file``, labels of the node table, or the label of the graph. mask:
        array, bool [N], unless the graphs have classes.
    """

    name: ClassVar[str] = "graph"
    test_params: ClassVar[Mapping[str, Any]] = {"nodes": "nodes.csv", "edges": "edges.csv"}

    def __init__(
        self,
        *,
        file: str | None = None,
        nodes: str | None = None,
        edges: str | None = None,
        graphs: str | None = None,
        split: Literal["train", "validation", "test", "all"] = "train",
        undirected: bool = True,
        normalise: bool = False,
    ) -> None:
        if (nodes is None) != (edges is None) or (nodes is None) == (file is None):
            raise ZooError("set either 'file', or 'nodes' and 'edges'")
        if graphs is not None and nodes is None:
            raise ZooError("'graphs' requires 'nodes' and 'edges'")
        self.file, self.nodes, self.edges, self.graphs = file, nodes, edges, graphs
        self.split, self.undirected, self.normalise = split, undirected, normalise

    def fields(self) -> Mapping[str, Field]:
        target = Field("array", TensorSchema(_NODES, "integer", minimum=None))
        inputs = {
            "features": Field("array", TensorSchema((*_NODES, "F"), "float")),
            "edges": Field("array", TensorSchema(("B", "E", 2), "integer", below="N")),
        }
        if self.graphs is not None:
            return {**inputs, "target": Field("label")}
        return {
            **inputs,
            "target": target if self.nodes is None else Field("labels"),
            "mask": Field("array", TensorSchema(_NODES, "bool")),
        }

    def open(self, *, evaluation: bool = False) -> Examples:
        labelled = self.split != "all"
        if self.nodes is None or self.edges is None:
            graph = read_graph_arrays(self.file or "")
        elif self.graphs is None:
            graph = read_graph_tables(self.nodes, self.edges, labelled=labelled)
        else:
            graphs = read_graph_set(self.nodes, self.edges, self.graphs, labelled=labelled)
            selected = graphs.select(self.split, evaluation=evaluation)
            return GraphExamples(graphs, selected, *self._inputs(graphs.features, graphs.edges))
        mask = self._mask(graph, evaluation=evaluation)
        return _WholeGraph(graph, *self._inputs(graph.features, graph.edges), mask)

    def _inputs(self, features: Array, edges: Array) -> tuple[Array, Array]:
        """Return the features and the edges that the model takes."""
        if self.normalise:
            sums = features.sum(axis=1, keepdims=True)
            features = features / np.where(sums == 0, 1, sums)
        if self.undirected:
            edges = np.concatenate([edges, edges[:, ::-1]])
        _, first = np.unique(edges, axis=0, return_index=True)
        return features.astype(np.float32), edges[np.sort(first)]

    def _mask(self, graph: Graph, *, evaluation: bool) -> Array:
        """Return which nodes are in the loss; none is valid for prediction with ``split: all``."""
        if self.split == "all":
            mask = graph.has_label
        else:
            mask = graph.split == SPLITS.index(self.split)
            unlabelled = np.flatnonzero(mask & ~graph.has_label)
            if len(unlabelled):
                name = graph.names[unlabelled[0]] if graph.names else unlabelled[0]
                raise DataError(f"node {name} of '{self.split}' has no label", graph.origin)
        if not mask.any() and not (evaluation and self.split == "all"):
            nodes = "with a label" if self.split == "all" else f"of the split '{self.split}'"
            hint = "" if self.split == "all" else "; split: all selects every node"
            raise DataError(f"the graph has no nodes {nodes}{hint}", graph.origin)
        return mask

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        nodes = "id,label,split,x1,x2\na,red,train,1,0\nb,blue,validation,0,2\nc,red,test,1,1\n"
        (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
        (folder / "edges.csv").write_text("source,target\na,b\nb,c\n", encoding="utf-8")
        return {"nodes": str(folder / "nodes.csv"), "edges": str(folder / "edges.csv")}


class _WholeGraph(Examples):
    def __init__(self, graph: Graph, features: Array, edges: Array, mask: Array) -> None:
        self.path = graph.origin
        self.example = {
            "features": features,
            "edges": edges.astype(np.int64),
            "target": graph.labels,
            "mask": mask,
        }
        self.names = graph.names

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Example:
        return dict(self.example)

    def position_names(self, index: int) -> Sequence[str] | None:
        return self.names

    def origin(self, index: int) -> str:
        return self.path
