import io
import lzma

import numpy as np
import pytest
from typer.testing import CliRunner

import zoo
from zoo import DataError, ZooError, ZooWarning
from zoo.cli.main import app
from zoo_datasets.graph import GraphDataset

NODES = "id,x,split,label,y\na,1,train,red,3\nb,0,val,,0\nc,2,test,blue,-1\nd,1,,red,1\n"
EDGES = "source,target\na,b\nc,a\n"


@pytest.fixture
def tables(tmp_path):
    def write(nodes=NODES, edges=EDGES):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "edges.csv").write_text(edges)
        return {"nodes": str(tmp_path / "nodes.csv"), "edges": str(tmp_path / "edges.csv")}

    return write


def _open(folder, split="train", **arrays):
    np.savez(folder / "a.npz", **arrays)
    return GraphDataset(file=str(folder / "a.npz"), split=split).open()


def test_a_graph_in_two_tables(tables):
    dataset = GraphDataset(**tables(), normalise=True)
    (example,) = (dataset.open()[i] for i in range(len(dataset.open())))
    np.testing.assert_allclose(example["features"], [[0.25, 0.75], [0, 0], [2, -1], [0.5, 0.5]])
    np.testing.assert_array_equal(example["edges"], [[0, 1], [2, 0], [1, 0], [0, 2]])
    assert example["target"] == ["red", "", "blue", "red"]
    assert dataset.open().position_names(0) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(example["mask"], [True, False, False, False])
    test = GraphDataset(**tables(), split="test", undirected=False).open()[0]
    np.testing.assert_array_equal(test["mask"], [False, False, True, False])
    np.testing.assert_array_equal(test["edges"], [[0, 1], [2, 0]])
    np.testing.assert_array_equal(test["features"], [[1, 3], [0, 0], [2, -1], [1, 1]])


@pytest.mark.parametrize("transposed", [False, True])
def test_a_graph_in_dense_arrays(tmp_path, transposed):
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    example = _open(
        tmp_path,
        "validation",
        features=np.eye(3),
        labels=np.array([0, 1, -1]),
        edges=edges.T if transposed else edges,
        idx_val=np.array([1]),
    )[0]
    np.testing.assert_array_equal(example["edges"][:3], edges)
    np.testing.assert_array_equal(example["mask"], [False, True, False])
    assert [example[key].dtype for key in ("features", "edges", "target", "mask")] == [
        np.float32,
        np.int64,
        np.int64,
        np.bool_,
    ]


@pytest.mark.parametrize(
    ("name", "nodes", "features", "edges", "classes", "train"),
    [
        ("cora", 2708, 1433, 5278, 7, 140),
        ("citeseer", 3327, 3703, 4552, 6, 120),
        ("pubmed", 19717, 500, 44324, 3, 60),
    ],
)
def test_published_graphs(published, name, nodes, features, edges, classes, train):
    file = published(f"planetoid/{name}.npz.xz")
    sizes = {"train": train, "validation": 500, "test": 1000}
    for split, size in sizes.items() if name == "cora" else [("train", train)]:
        example = GraphDataset(file=str(file), split=split, normalise=True).open()[0]
        assert example["features"].shape == (nodes, features)
        assert example["edges"].shape == (2 * edges, 2)
        assert example["mask"].sum() == size
        assert example["target"].max() == classes - 1
        sums = example["features"].sum(axis=1)
        np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-5)


def test_the_split_of_cora_is_the_published_one(published):
    file = published("planetoid/cora.npz.xz")
    data = np.load(io.BytesIO(lzma.decompress(file.read_bytes())))
    for split, name in (("train", "idx_train"), ("validation", "idx_val"), ("test", "idx_test")):
        mask = GraphDataset(file=str(file), split=split).open()[0]["mask"]
        assert set(np.flatnonzero(mask)) == set(data[name].tolist())


def _spec(tables, **changes):
    data = {"type": "graph", **tables()}
    return {
        "zoo": 1,
        "name": "nodes",
        "extends": "gat-tiny",
        "model": {"features": 2, "classes": 2, "readout": "linear"},
        "train": {"data": data, "optimiser": {"type": "adam", "lr": 0.1}, "steps": 1, **changes},
    }


def test_the_example_is_a_batch_of_a_node_classifier(tables):
    """The preprocessor of the labels need not be named, because only one fits."""
    model = zoo.compose(_spec(tables), seed=0)
    (update,) = zoo.batches(_spec(tables), model).epoch(0)
    (batch,) = update.batches
    assert batch["target"].tolist() == [[1, -1, 0, 1]]
    assert batch["mask"].tolist() == [[True, False, False, False]]
    assert model(batch).logits.shape == (1, 4, 2)
    assert model.spec["preprocessing"]["target"] == {
        "type": "preprocessing:labels",
        "classes": ["blue", "red"],
    }
    assert "labels" in {row["name"] for row in model.providers}


def test_labels_are_those_of_the_training_and_are_predicted_by_name(tables, tmp_path):
    zoo.train(_spec(tables), output=tmp_path / "run", device="cpu")
    only_red = tables(NODES.replace("blue", "red"))
    test = {"type": "graph", **only_red, "split": "test"}
    logits = zoo.predict_positions(zoo.load(tmp_path / "run"), [_inputs(only_red)])
    expected = float(logits[0][2].label == "red")
    assert zoo.evaluate(tmp_path / "run", test, metrics=["accuracy"]).values["accuracy"] == expected
    new = tables("id,x,y\ne,1,2\nf,3,1\n", "source,target\ne,f\n")
    options = [f"--data={key}={value}" for key, value in {**new, "split": "all"}.items()]
    arguments = ["predict", str(tmp_path / "run"), "--data", "type=graph", *options]
    done = CliRunner().invoke(app, arguments)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["e", "f"], done.output
    assert {line.split()[1] for line in done.stdout.splitlines()} <= {"red", "blue"}


@pytest.mark.parametrize("undirected", [True, False])
def test_an_edge_that_occurs_twice_counts_once(tables, undirected):
    once = GraphDataset(**tables(edges="source,target\na,b\nc,a\n"), undirected=undirected)
    expected = once.open()[0]["edges"].tolist()
    again = "a,b\nb,a\n" if undirected else "c,a\na,b\n"
    twice = tables(edges=f"source,target\na,b\nc,a\n{again}")
    assert GraphDataset(**twice, undirected=undirected).open()[0]["edges"].tolist() == expected


def test_other_columns_of_the_edges_are_reported(tables):
    files = tables(edges="source,target,weight\na,b,0.5\n")
    with pytest.warns(ZooWarning, match=r"edges\.csv: 'weight' of the edges is not used"):
        GraphDataset(**files).open()


def _inputs(files):
    example = GraphDataset(**files, split="all").open()[0]
    return {key: example[key] for key in ("features", "edges")}


def test_a_model_without_names_of_classes_is_evaluated_with_those_of_the_data(tables):
    spec = {k: v for k, v in _spec(tables).items() if k != "train"}
    model = zoo.compose(spec, seed=0)
    data = {"type": "graph", **tables(), "split": "test"}
    with pytest.warns(ZooWarning, match="does not contain classes of 'target'"):
        found = zoo.evaluate(model, data, metrics=["accuracy"])
    assert found.values["accuracy"] in (0.0, 1.0)


def test_all_nodes_with_a_label(tables):
    example = GraphDataset(**tables(), split="all").open()[0]
    assert example["mask"].tolist() == [True, False, True, True]
    without = {**tables("id,x\na,1\n", "source,target\na,a\n"), "split": "all"}
    assert GraphDataset(**without).open(evaluation=True)[0]["mask"].tolist() == [False]
    with pytest.raises(DataError, match="no nodes with a label"):
        GraphDataset(**without).open()


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (NODES.replace("a,1,", "a,one,"), EDGES, r"nodes\.csv:2: feature 'x' is 'one'"),
        (NODES.replace("c,2,", "c,nan,"), EDGES, r"nodes\.csv:4: feature 'x' is 'nan'"),
        (NODES.replace("b,0,", "a,0,"), EDGES, r"nodes\.csv:3: node 'a' occurs twice"),
        (NODES.replace("val", "dev"), EDGES, r"nodes\.csv:3: split is 'dev', but expected train"),
        (NODES.replace("label", "class"), EDGES, r"nodes\.csv:1: no column 'label'.*class"),
        (
            NODES.replace("train,red", "train,"),
            EDGES,
            r"nodes\.csv: node a of 'train' has no",
        ),
        (NODES.replace("train", "test"), EDGES, r"nodes\.csv: the graph has no nodes of .*'train'"),
        ("id,label,split\na,red,train\n", EDGES, r"nodes\.csv:1: .*no columns with features"),
        (NODES, "source,target\na,b\na,e\n", r"edges\.csv:3: no node 'e' in the node table"),
        (NODES, "from,target\na,b\n", r"edges\.csv:1: no column 'source'"),
    ],
)
def test_a_wrong_table_raises_with_file_and_line(tables, nodes, edges, message):
    with pytest.raises(DataError, match=message):
        GraphDataset(**tables(nodes, edges)).open()


GRAPH = {
    "features": np.eye(2),
    "labels": np.array([0, 1]),
    "edges": np.array([[0], [1]]),
    "idx_train": np.array([0]),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.array([[1.0], [np.nan]])}, r"a\.npz\[1\]: a feature is NaN or infinite"),
        ({"features": np.ones(2)}, r"'features' is float64 \[2\], but expected numbers \[N, F\]"),
        ({"labels": np.array([0])}, r"'labels' is int64 \[1\], but expected integers \[2\]"),
        ({"edges": np.array([[0], [2]])}, "'edges' contains 2, but expected 0 to 1"),
        ({"edges": np.array([[0.0, 1.0]])}, r"'edges' is float64 \[1, 2\]"),
        ({"idx_train": np.array([-1])}, "'idx_train' contains -1, but expected 0 to 1"),
    ],
)
def test_wrong_arrays_raise(tmp_path, changes, message):
    with pytest.raises(DataError, match=rf"a\.npz.*: .*{message}|{message}"):
        _open(tmp_path, **{**GRAPH, **changes})


def test_a_missing_array_is_named(tmp_path):
    arrays = {name: array for name, array in GRAPH.items() if name != "labels"}
    with pytest.raises(DataError, match=r"a\.npz: no array 'labels'.*edges, features, idx_train"):
        _open(tmp_path, **arrays)


@pytest.mark.parametrize("params", [{}, {"nodes": "a"}, {"file": "a", "nodes": "b", "edges": "c"}])
def test_other_combinations_of_files_raise(params):
    with pytest.raises(ZooError, match="either 'file', or 'nodes' and 'edges'"):
        GraphDataset(**params)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shape": [3, 2**40]}, "3,298,534,883,328 features; at most"),
        ({"shape": [3, 2, 1]}, "'shape' is not two integers"),
        ({"indptr": [0, -1, 3, 2]}, "'indptr' does not fit"),
        ({"indices": [0.5, 1.0]}, r"'indices' is float64 \[2\]"),
        ({"codebook": [1.0], "codes": [0, 5]}, "'codes' contains 5"),
        ({"values": [1.0] * 7}, "'indptr' does not fit"),
        ({"features": [["a"]]}, "'features' is <U1"),
        ({"idx_train": [0.5]}, "'idx_train' is float64"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, wrong, message):
    arrays = {"shape": [3, 2], "indptr": [0, 1, 2, 2], "indices": [0, 1], "labels": [0, 1, 0]}
    arrays |= {"edges": [[0, 1]], "idx_train": [0]}
    assert len(_open(tmp_path, **arrays)) == 1
    with pytest.raises(DataError, match=rf"a\.npz: .*{message}"):
        _open(tmp_path, **arrays | wrong)
