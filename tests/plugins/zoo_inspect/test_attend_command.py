"""``zoo attend``."""

import json

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo_preprocessing.text_list import TextList

G2P = "g2p-bahdanau"


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["attend", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output if code != 1 else str(done.exception)


def test_the_terminal_shows_the_alignment_and_its_equations():
    text = run(G2P, "attention")
    assert "g2p-bahdanau: attention → AH T EH N SH AH N" in text
    assert "A T T E N T I O N" in text
    assert "a(q, k) = vᵀtanh(Wq + Uk)" in text
    assert "alignment soft: Bahdanau" in text  # without defaults


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
    monkeypatch.setattr("zoo_inspect.attend_command._LARGE_BYTES", 100)
    monkeypatch.setattr("zoo_inspect.stored.MAX_LISTED", 5)
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


@pytest.fixture
def stories(tmp_path, monkeypatch):
    """A saved memory network that takes texts, in the current folder."""
    monkeypatch.chdir(tmp_path)
    preprocessing = {key: {"type": "text"} for key in ("story", "question", "target")}
    preprocessing["story"] = {"type": "text-list"}
    overrides = ["model.memory_size=6", f"preprocessing={json.dumps(preprocessing)}"]
    model = zoo.compose("memory-network-tiny", overrides=overrides, seed=0)
    model.tokenizer = dict.fromkeys(preprocessing, TextList.example_stored())
    section = {"test": {"type": "datasets:stories", "files": "test.txt"}}
    zoo.save(model, "model.safetensors", provenance={"train": {"section": section}})
    return "model.safetensors"


def test_a_model_with_several_inputs(stories):
    once = run(stories, "story=the cat", "story=a mat", "question=the mat")
    assert "the cat" in once
    assert "a mat" in once
    assert run(stories, 'story=["the cat", "a mat"]', "question=the mat") == once
    for arguments, message in [
        (
            ["the mat"],
            "takes 'story' (texts) and 'question' (a text); write 'story=…' 'question=…'",
        ),
        (["question=the mat"], "there is no 'story'"),
        (["story=[the", "question=a mat"], "'story' is not a list in JSON"),
        (["story=the", "question=a", "question=mat"], "'question' has 2 values, but takes one"),
    ]:
        assert message in run(stories, *arguments, code=1)


def test_the_folder_of_the_output_is_checked_before_the_model_is_loaded():
    message = run("no-such-model", "zoo", "-o", "missing/view.png", code=1)
    assert "there is no folder missing" in message


def test_files_in_the_place_of_the_model(tmp_path):
    (tmp_path / "3.png").write_bytes(b"\x89PNG" * 9)
    assert "the model comes first: zoo attend MODEL INPUT" in run(tmp_path / "3.png", "a", code=1)
    (tmp_path / "view.html").touch()
    assert "computed again with --verify" in run(tmp_path / "view.html", code=1)


def test_an_input_is_needed(stories):
    text = " ".join(run(stories, code=2).replace("│", " ").split())
    assert "takes 'story' (texts) and 'question' (a text)" in text
    assert "--data type=stories --data files=FILE" in text
