"""``zoo attend``."""

import json

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app

G2P = "g2p-bahdanau"


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["attend", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output if code != 1 else str(done.exception)


def test_the_terminal_shows_the_alignment_and_its_equations():
    text = run(G2P, "attention")
    assert "g2p-bahdanau: attention → AH T EH N SH AH N" in text
    assert "A T T E N T I O N" in text
    assert r"a(q, k) = v^\top \tanh(W q + U k)" in text


def test_a_forced_output_as_a_file(tmp_path):
    run(G2P, "zoo", "--output", "Z UW", "-o", tmp_path / "view.json")
    data = json.loads((tmp_path / "view.json").read_text())
    assert (data["output"], data["provenance"]["generated"]) == ("Z UW", False)
    assert "the same" in run(tmp_path / "view.json", "--verify")


def test_nodes_of_a_graph_have_the_names_and_classes_of_the_dataset(tmp_path, monkeypatch):
    model = zoo.save(zoo.compose("gat-tiny", seed=0), tmp_path / "model.safetensors")
    features = zoo.load(model).batch_schema()["features"].dims[2]
    row = ",".join("1" * features)
    header = ",".join(f"x{i}" for i in range(features))
    nodes = [f"id,label,split,{header}", f"a,red,train,{row}", f"b,,test,{row}"]
    (tmp_path / "nodes.csv").write_text("\n".join(nodes))
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    parts = {"type": "graph", "split": "all", "nodes": "nodes.csv", "edges": "edges.csv"}
    options = [part for key in parts for part in ("--data", f"{key}={parts[key]}")]
    monkeypatch.chdir(tmp_path)
    run(model, *options, "-o", "view.json")
    layer = json.loads((tmp_path / "view.json").read_text())["layers"][0]
    assert layer["rows"]["labels"] == ["a · red", "b"]
    assert "the same" in run("view.json", "--verify")


def test_large_json_is_reported_and_its_weights_are_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr("zoo.cli.attend._LARGE_BYTES", 100)
    monkeypatch.setattr("zoo.inspection.stored.MAX_LISTED", 5)
    file = tmp_path / "view.json"
    assert "--layers and --heads save less" in run(G2P, "zoo", "-o", file)
    (weights,) = json.loads(file.read_text())["weights"]
    assert weights["array"] == "<f4"
    assert "the same" in run(file, "--verify")


def test_a_page_is_verified(tmp_path):
    run(G2P, "zoo", "-o", tmp_path / "view.html")
    assert "the same" in run("--verify", tmp_path / "view.html")
    page = (tmp_path / "view.html").read_text()
    (tmp_path / "view.html").write_text(page.replace('"zoo"', '"zap"'))
    assert "differs from the model" in run(tmp_path / "view.html", "--verify", code=1)


def test_token_ids():
    text = run(G2P, "4 5 6", "--ids", "--output", "7 8")
    assert "</s>" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zoo", "-o", "view.pdf"], "one of .html, .png, .svg, .json"),
        (["two", "words"], "put a text into quotes"),
        (["zoo", "--layers", "encoder.*"], "layers are decoder.attention"),
        (["zoo", "--heads", "2"], "decoder.attention has heads 1 to 1, not 2"),
        (["zoo", "--heads", "x"], "expected numbers from 1"),
    ],
)
def test_errors_say_what_to_do(arguments, message):
    assert message in run(G2P, *arguments, code=1)


def test_an_input_is_needed():
    run(G2P, code=2)
