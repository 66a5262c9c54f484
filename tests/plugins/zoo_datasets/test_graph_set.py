import pickle

import numpy as np
import pytest
from typer.testing import CliRunner

import zoo
from zoo import DataError, ZooError
from zoo.cli.main import app
from zoo.testing.configuration import configurations
from zoo.testing.laws.dataset import LAWS
from zoo.testing.run import run_law
from zoo_datasets.graph import GraphDataset

GRAPHS = "id,label,split\ng,ring,train\nh,line,test\ni,line,train\nj,,\n"
NODES = "id,graph,x,y\na,g,1,3\nb,h,0,0\nc,g,2,-1\nd,i,1,1\ne,h,5,6\nf,j,0,1\n"
EDGES = "source,target\ne,b\na,c\nd,d\n"


def _write(folder, nodes=NODES, edges=EDGES, graphs=GRAPHS):
    files = {"nodes": nodes, "edges": edges, "graphs": graphs}
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: str(folder / f"{name}.csv") for name in files}


class Graphs(GraphDataset):
    name = "graphs"

    @classmethod
    def write_example(cls, folder):
        return _write(folder)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_several_graphs_satisfy_the_laws_of_datasets(law):
    outcome = run_law(law, next(configurations(Graphs)))
    assert outcome.status == "passed", outcome


def test_each_graph_has_its_nodes_edges_and_label(tmp_path):
    dataset = GraphDataset(**_write(tmp_path))
    examples = pickle.loads(pickle.dumps(dataset.open()))
    assert len(examples) == 2
    assert examples.sizes() == [2, 1]
    assert examples.origin(1).endswith("graphs.csv:4")
    ring, line = examples[0], examples[1]
    assert (ring["target"], line["target"]) == ("ring", "line")
    np.testing.assert_array_equal(ring["features"], [[1, 3], [2, -1]])
    np.testing.assert_array_equal(ring["edges"], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(line["features"], [[1, 1]])
    np.testing.assert_array_equal(line["edges"], [[0, 0]])
    assert (ring["features"].dtype, ring["edges"].dtype) == (np.float32, np.int64)
    test = GraphDataset(**_write(tmp_path), split="test", undirected=False, normalise=True)
    np.testing.assert_allclose(test.open()[0]["features"], [[0, 0], [5 / 11, 6 / 11]])
    np.testing.assert_array_equal(test.open()[0]["edges"], [[1, 0]])


def test_all_graphs_with_a_label_or_every_graph_of_a_table_without_labels(tmp_path):
    assert len(GraphDataset(**_write(tmp_path), split="all").open()) == 3
    new = GraphDataset(**_write(tmp_path, graphs="id\ng\nh\ni\nj\n"), split="all")
    assert len(new.open(evaluation=True)) == 4
    with pytest.raises(DataError, match=r"graphs\.csv: the table contains no graphs with a label"):
        new.open()


def test_a_graph_without_edges(tmp_path):
    examples = GraphDataset(**_write(tmp_path, edges="source,target\nd,d\n")).open()
    assert examples[0]["edges"].shape == (0, 2)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"graphs": GRAPHS.replace("h,", "g,")}, r"graphs\.csv:3: graph 'g' occurs twice"),
        ({"graphs": GRAPHS.replace("test", "dev")}, r"graphs\.csv:3: split is 'dev'"),
        ({"graphs": GRAPHS.replace("label", "class")}, r"graphs\.csv:1: no column 'label'"),
        ({"graphs": GRAPHS.replace("line,train", ",train")}, r"graphs\.csv:4: .*has no label"),
        ({"graphs": GRAPHS.replace("train", "test")}, r"graphs\.csv: .*no graphs of .*'train'"),
        ({"graphs": GRAPHS + "k,ring,train\n"}, r"graphs\.csv:6: the graph has no nodes"),
        ({"nodes": NODES.replace("c,g", "c,z")}, r"nodes\.csv:4: no graph 'z' in the graph table"),
        ({"nodes": NODES.replace("graph", "part")}, r"nodes\.csv:1: no column 'graph'"),
        ({"edges": EDGES.replace("a,c", "a,b")}, r"edges\.csv:3: .*nodes of different graphs"),
        ({"edges": EDGES.replace("a,c", "a,z")}, r"edges\.csv:3: no node 'z' in the node table"),
    ],
)
def test_a_wrong_table_raises_with_file_and_line(tmp_path, tables, message):
    with pytest.raises(DataError, match=message):
        GraphDataset(**_write(tmp_path, **tables)).open()


def test_graphs_without_the_other_tables_raise():
    with pytest.raises(ZooError, match="'graphs' requires 'nodes' and 'edges'"):
        GraphDataset(file="a.npz", graphs="graphs.csv")


def _spec(files):
    data = {"type": "graph", **files}
    optimiser = {"type": "adam", "lr": 0.1}
    return {
        "zoo": 1,
        "name": "graphs",
        "extends": "graph-small",
        "model": {"features": 2, "encoder": {"hidden": 4, "heads": 2, "output": 4}},
        "train": {"data": data, "optimiser": optimiser, "batch": {"items": 2}, "steps": 2},
    }


def test_graphs_of_different_sizes_are_a_batch_with_a_mask(tmp_path):
    spec = _spec(_write(tmp_path))
    model = zoo.compose(spec, seed=0)
    (update,) = zoo.batches(spec, model).epoch(0)
    (batch,) = update.batches
    rows = sorted(batch["mask"].sum(dim=1).tolist())
    assert rows == [1, 2]
    assert model(batch).logits.shape == (2, 1, 2)


def test_a_graph_classifier_trains_and_predicts_by_name(tmp_path):
    files = _write(tmp_path)
    zoo.train(_spec(files), output=tmp_path / "run", device="cpu")
    found = zoo.evaluate(tmp_path / "run", {"type": "graph", **files, "split": "test"})
    assert found.values["accuracy"] in (0.0, 1.0)
    new = {**_write(tmp_path, graphs="id\ng\nh\ni\nj\n"), "split": "all", "type": "graph"}
    options = [f"--data={key}={value}" for key, value in new.items()]
    done = CliRunner().invoke(app, ["predict", str(tmp_path / "run"), *options])
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.output
    assert [line.split()[0].rpartition("/")[2] for line in lines] == [
        f"graphs.csv:{n}" for n in (2, 3, 4, 5)
    ]
    assert {line.split()[1] for line in lines} <= {"ring", "line"}
