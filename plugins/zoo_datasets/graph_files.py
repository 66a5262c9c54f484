"""Files with a graph."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zoo import DataError, ZooWarning
from zoo.plugin import Array, suggest
from zoo_datasets.array_rows import read_npz
from zoo_datasets.csv_rows import CsvRows, require_columns

SPLITS = ("none", "train", "validation", "test")
_SPLIT_NAMES = {"": 0, "train": 1, "validation": 2, "val": 2, "valid": 2, "test": 3}
_MAX_FEATURES = 2**28
_INDEX_NAMES = {"idx_train": 1, "idx_val": 2, "idx_test": 3}


class Graph(NamedTuple):
    """A graph with N nodes and E directed edges.

    Attributes:
        features: [N, F].
        edges: [E, 2], source and target.
        labels: IDs [N], -1 for nodes without a class; or the N names of their classes, empty for
            nodes without one.
        split: [N], index in `SPLITS`.
        origin: the file.
        names: the IDs of the nodes in the table; None if they are numbers.
    """

    features: Array
    edges: Array
    labels: Array | list[str]
    split: Array
    origin: str
    names: list[str] | None = None

    @property
    def has_label(self) -> Array:
        """Which nodes have a class [N]."""
        if isinstance(self.labels, list):
            return np.array([name != "" for name in self.labels])
        return self.labels >= 0


def read_graph_arrays(file: str) -> Graph:
    """Read a graph from a .npz file."""
    path, arrays = read_npz(file)
    features = _read_features(arrays, path)
    labels = _get(arrays, "labels", path)
    edges = _get(arrays, "edges", path)
    nodes = len(features)
    if labels.shape != (nodes,) or labels.dtype.kind not in "iu":
        raise DataError(
            f"'labels' is {labels.dtype} {list(labels.shape)}, but expected integers [{nodes}]",
            path,
        )
    if edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        raise DataError(
            f"'edges' is {edges.dtype} {list(edges.shape)}, but expected integers [E, 2]", path
        )
    edges = edges if edges.shape[1] == 2 else edges.T
    _check_nodes(edges, nodes, "edges", path)
    split = np.zeros(nodes, np.int8)
    for name, value in _INDEX_NAMES.items():
        if name in arrays:
            _check_nodes(arrays[name], nodes, name, path)
            split[arrays[name].astype(np.int64)] = value
    return Graph(features, edges.astype(np.int64), labels.astype(np.int64), split, path)


def _get(arrays: Mapping[str, Array], name: str, path: str) -> Array:
    if name not in arrays:
        raise DataError(f"no array '{name}'{suggest(name, arrays)}", path)
    return arrays[name]


def _read_features(arrays: Mapping[str, Array], path: str) -> Array:
    """Return dense features [N, F]."""
    if "features" in arrays or "indptr" not in arrays:
        stored = _get(arrays, "features", path)
        if stored.ndim != 2 or stored.dtype.kind not in "fiub":
            raise DataError(
                f"'features' is {stored.dtype} {list(stored.shape)}, but expected numbers [N, F]",
                path,
            )
        features = stored.astype(np.float64)
    else:
        nodes, width = _read_shape(_get(arrays, "shape", path), path)
        for name in ("indptr", "indices"):
            array = _get(arrays, name, path)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise DataError(
                    f"'{name}' is {array.dtype} {list(array.shape)}, but expected integers", path
                )
        indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"]
        values: Array | float = arrays.get("values", np.ones(1))
        if "codebook" in arrays and "codes" in arrays:
            _check_nodes(arrays["codes"], len(arrays["codebook"]), "codes", path)
            values = arrays["codebook"][arrays["codes"]]
        counts = np.diff(indptr)
        fits = len(indptr) == nodes + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
        if not fits or (counts < 0).any() or np.shape(values) not in ((1,), indices.shape):
            raise DataError("'indptr' does not fit 'shape', 'indices' and the values", path)
        _check_nodes(indices, width, "indices", path)
        features = np.zeros((nodes, width))
        features[np.repeat(np.arange(nodes), counts), indices] = values
    wrong = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(wrong):
        raise DataError("a feature is NaN or infinite", f"{path}[{wrong[0]}]")
    return features


def _read_shape(shape: Array, path: str) -> tuple[int, int]:
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError("'shape' is not two integers, the numbers of nodes and features", path)
    nodes, width = int(shape[0]), int(shape[1])
    if nodes * width > _MAX_FEATURES:
        raise DataError(
            f"'shape' is {[nodes, width]}: {nodes * width:,} features; at most {_MAX_FEATURES:,} "
            "are allowed",
            path,
        )
    return nodes, width


def _check_nodes(ids: Array, nodes: int, name: str, path: str) -> None:
    if ids.dtype.kind not in "iu" and ids.size:
        raise DataError(f"'{name}' is {ids.dtype}, but expected integers", path)
    if ids.size and (ids.min() < 0 or ids.max() >= nodes):
        wrong = int(ids.min() if ids.min() < 0 else ids.max())
        raise DataError(f"'{name}' contains {wrong}, but expected 0 to {nodes - 1}", path)


def read_graph_tables(nodes: str, edges: str, *, labelled: bool = True) -> Graph:
    """Read a graph from a node table and an edge table.

    Args:
        labelled: whether the columns ``label`` and ``split`` must exist.
    """
    rows = CsvRows(nodes)
    require_columns(rows, ["id", "label", "split"] if labelled else ["id"])
    table = read_nodes(rows, other=("id", "label", "split"))
    names = table.other.get("split", [""] * len(rows))
    split = np.array([read_split(name, rows.origin(i)) for i, name in enumerate(names)], np.int8)
    labels = table.other.get("label", [""] * len(rows))
    pairs = np.array(list(read_edges(CsvRows(edges), table.numbers)), np.int64).reshape(-1, 2)
    return Graph(table.features, pairs, labels, split, str(rows.path), list(table.numbers))


class Nodes(NamedTuple):
    """A node table.

    Attributes:
        features: [N, F].
        numbers: the number of each node by its ID.
        other: the values of the columns that are not features, by name.
    """

    features: Array
    numbers: dict[str, int]
    other: dict[str, list[str]]


def read_nodes(rows: CsvRows, other: Sequence[str]) -> Nodes:
    """Read a node table.

    Args:
        other: names of the columns that are not features.
    """
    columns = [name for name in rows.columns if name not in other]
    if not columns:
        raise DataError("the table has no columns with features", rows.origin(-1))
    features = np.zeros((len(rows), len(columns)))
    nodes = Nodes(features, {}, {name: [] for name in other if name in rows.columns})
    for index, row in enumerate(rows):
        origin = rows.origin(index)
        if row["id"] in nodes.numbers:
            raise DataError(f"node '{row['id']}' occurs twice", origin)
        nodes.numbers[row["id"]] = index
        for name, values in nodes.other.items():
            values.append(row[name])
        features[index] = [_read_number(row[name], name, origin) for name in columns]
    return nodes


def read_split(name: str, origin: str) -> int:
    """Return a split by its name in a table, as an index in `SPLITS`."""
    if name not in _SPLIT_NAMES:
        expected = "train, validation, test or empty"
        raise DataError(f"split is '{name}', but expected {expected}", origin)
    return _SPLIT_NAMES[name]


def _read_number(text: str, column: str, origin: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise DataError(f"feature '{column}' is '{text}', not a finite number", origin)
    return value


def read_edges(rows: CsvRows, numbers: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the source and the target of each edge of a table."""
    require_columns(rows, ["source", "target"])
    if others := [column for column in rows.columns if column not in ("source", "target")]:
        named = ", ".join(f"'{column}'" for column in others)
        warnings.warn(f"{rows.path}: {named} of the edges is not used", ZooWarning, stacklevel=2)
    for index, row in enumerate(rows):
        for column in ("source", "target"):
            if row[column] not in numbers:
                raise DataError(f"no node '{row[column]}' in the node table", rows.origin(index))
        yield numbers[row["source"]], numbers[row["target"]]
