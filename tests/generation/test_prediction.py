"""Prediction of classes, of items and of positions; empty inputs of every family of models."""

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

import zoo
from zoo import DataError, ZooError
from zoo.cli.main import app
from zoo.errors import InputError
from zoo.plugin import Audio
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

GRU = {"type": "gru", "hidden": 4}
GRAPH = {"type": "graph-attention", "layers": 1, "hidden": 4, "heads": 1, "output": 4}
TRANSFORMER = {
    "type": "transformer",
    "layers": 1,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 8},
}
TOKEN = {"type": "token", "vocab": 9, "dim": 4}
LABELS = ["DET", "NOUN", "VERB"]


def invoke(*arguments, **options):
    """Return what a command prints, and its error."""
    result = CliRunner().invoke(app, list(arguments), **options)
    return result.stdout, str(result.exception or "")


def compose(model, **sections):
    built = zoo.compose({"zoo": 1, "name": "tiny", "model": model, **sections}, seed=1)
    if model.get("source") == TOKEN:
        built.tokenizer = {"source": EXAMPLE_TOKENIZER}
    return built.eval()


def classifier(encoder=GRU, **options):
    model = {"type": "classifier", "source": TOKEN, "encoder": encoder, "classes": 3, **options}
    return compose(model, preprocessing={"source": "text", "target": "label"})


def tagger():
    model = {"type": "tagger", "source": TOKEN, "encoder": GRU, "labels": 3}
    target = {"type": "labels", "classes": LABELS}
    return compose(model, preprocessing={"source": "text", "target": target})


def node_classifier(**options):
    encoder = {**GRAPH, "attention": {"scorer": "gat"}}
    model = {"type": "node-classifier", "features": 2, "classes": 3, "encoder": encoder, **options}
    return compose(model)


TEXT_MODELS = {
    "gru-first": lambda: classifier(),
    "gru-summary": lambda: classifier(pooling="summary"),
    "transformer-first": lambda: classifier(TRANSFORMER),
    "transformer-summary": lambda: classifier(TRANSFORMER, pooling="summary"),
    "tagger": tagger,
}


@pytest.mark.parametrize("name", TEXT_MODELS)
def test_an_empty_text_raises_with_its_number(name):
    model = TEXT_MODELS[name]()
    predict = zoo.predict_positions if name == "tagger" else zoo.predict
    for text in ("", "  "):
        with pytest.raises(InputError, match=r"^input 2: 'source' is empty: it has no tokens$"):
            predict(model, ["the cat", text])


@pytest.mark.parametrize("key", ["story", "question"])
def test_an_empty_text_of_a_story_raises(key):
    spec = {
        "zoo": 1,
        "name": "stories",
        "extends": "memory-network-tiny",
        "preprocessing": {"story": "text-list", "question": "text", "target": "text"},
    }
    model = zoo.compose(spec)
    model.tokenizer = dict.fromkeys(("story", "question", "target"), EXAMPLE_TOKENIZER)
    story = {"story": ["the cat sat"], "question": "the cat"}
    with pytest.raises(DataError, match=f"input 1: '{key}' is empty"):
        zoo.predict(model, [{**story, key: [""] if key == "story" else ""}])


def test_an_empty_waveform_and_file_raise(tmp_path):
    source = {"type": "log-mel", "rate": 8000, "window": 64, "hop": 32, "mels": 8}
    spec = {"type": "classifier", "source": source, "encoder": GRU, "classes": 3}
    model = compose(spec, preprocessing={"source": {"type": "audio", "rate": 8000}})
    with pytest.raises(DataError, match="input 1: the audio has no samples"):
        zoo.predict(model, [Audio(np.zeros(0, np.float32), 8000)])
    soundfile.write(tmp_path / "none.wav", np.zeros(0), 8000)
    (tmp_path / "zero.wav").write_bytes(b"")
    for name in ("none.wav", "zero.wav"):
        with pytest.raises(DataError):
            zoo.predict(model, [tmp_path / name])
    zoo.save(model, tmp_path / "model.safetensors")
    path = str(tmp_path / "none.wav")
    done = CliRunner().invoke(app, ["predict", str(tmp_path / "model.safetensors"), path])
    assert str(done.exception) == f"{path}: the audio has no samples"


def test_an_empty_image_raises(tmp_path):
    source = {"type": "patches", "size": 4, "channels": 1, "dim": 8}
    spec = {"type": "classifier", "source": source, "encoder": GRU, "classes": 3}
    model = compose(spec, preprocessing={"source": {"type": "image", "size": 8}})
    (tmp_path / "zero.png").write_bytes(b"")
    for value in (tmp_path / "zero.png", np.zeros((0, 8, 3), np.uint8)):
        with pytest.raises(DataError):
            zoo.predict(model, [value])


def test_an_empty_text_of_an_evaluation_names_its_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": "the cat", "y": 0}\n{"x": "\\u0001", "y": 1}\n')
    fields = {"source": {"column": "x"}, "target": {"column": "y", "content": "label"}}
    data = {"type": "json-lines", "file": str(tmp_path / "a.jsonl"), "fields": fields}
    model = classifier()
    model.spec["preprocessing"]["target"] = {"type": "label", "classes": [0, 1]}
    model.tokenizer = {"source": EXAMPLE_TOKENIZER.replace('"WhitespaceSplit"', '"Whitespace"')}
    model.tokenizer["source"] = model.tokenizer["source"].replace(
        '"normalizer": null', '"normalizer": {"type": "Replace", "pattern": {"String": "\\u0001"}, '
        '"content": ""}'
    )  # fmt: skip
    with pytest.raises(DataError, match=r"a\.jsonl:2: 'source' is empty"):
        zoo.evaluate(model, data, metrics=["accuracy"])


def test_a_tagger_predicts_the_label_of_each_token():
    model = tagger()
    short, longer = zoo.predict_positions(model, ["the cat", "the cat sat on"])
    assert [len(short), len(longer)] == [2, 4]
    assert all(each.label in LABELS and len(each.top) == 3 for each in longer)
    (alone,) = zoo.predict_positions(model, ["the cat"])
    assert [p.label for p in alone] == [p.label for p in short]
    assert zoo.predict_positions(model, "the cat") == alone
    assert zoo.predict(classifier(), "the cat") == zoo.predict(classifier(), ["the cat"])[0]
    with pytest.raises(ZooError, match=r"one class for each item; use zoo\.predict_positions"):
        zoo.predict(model, ["the cat"])
    with pytest.raises(ZooError, match="one class for each position"):
        zoo.predict_positions(classifier(), ["the cat"])


def test_a_node_classifier_predicts_the_nodes_of_graphs():
    model = node_classifier()
    rng = np.random.default_rng(0)
    graphs = [
        {"features": rng.normal(size=(n, 2)), "edges": np.array(edges, int).reshape(-1, 2)}
        for n, edges in ((3, [[0, 1], [1, 2]]), (2, []))
    ]
    first, second = zoo.predict_positions(model, graphs)
    assert [len(first), len(second)] == [3, 2]
    (alone,) = zoo.predict_positions(model, graphs[1:])
    for a, b in zip(second, alone, strict=True):
        assert a.label == b.label
        assert a.probability == pytest.approx(b.probability, abs=1e-6)
    with pytest.raises(DataError, match=r"input 1: expected an array, found 'nodes.csv'"):
        zoo.predict_positions(model, [{"features": "nodes.csv", "edges": graphs[0]["edges"]}])


@pytest.fixture
def saved(tmp_path):
    def save(model):
        return str(zoo.save(model, tmp_path / "model.safetensors"))

    return save


@pytest.mark.parametrize("verb", ["predict", "generate"])
def test_an_empty_line_of_a_file_is_named(verb, saved, tmp_path):
    path = saved(classifier())
    file = tmp_path / "names.txt"
    file.write_text("the\n" * 40 + "\nthe\n")
    _, error = invoke(verb, path, "--file", str(file))
    assert error == f"{file}:41: 'source' is empty: it has no tokens"
    _, error = invoke(verb, path, "-", input="the\n\n")
    assert error == "standard input:2: 'source' is empty: it has no tokens"
    file.write_text("")
    _, error = invoke(verb, path, "--file", str(file))
    assert error == f"{file} is empty; expected one input per line"


@pytest.mark.parametrize("verb", ["predict", "generate"])
def test_the_name_of_a_file_is_not_classified(verb, saved, tmp_path, monkeypatch):
    path = saved(classifier())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cat").write_text("the\n")
    _, error = invoke(verb, path, "the cat", "cat")
    assert error.startswith("'cat' is a file, but the model takes texts: --file cat reads its")
    output, error = invoke(verb, path, "-", input="cat\n")
    assert (output.split()[0].isalnum(), error) == (True, "")


def test_predict_prints_the_label_of_each_token(saved):
    path = saved(tagger())
    output, _ = invoke("predict", path, "the cat", "sat")
    rows = [line.split() for line in output.splitlines()]
    assert [row[:1] for row in rows] == [["the"], ["cat"], [], ["sat"], []]
    assert {row[1] for row in rows if row} <= set(LABELS)
    assert invoke("generate", path, "the cat", "sat") == (output, "")


@pytest.mark.parametrize("verb", ["predict", "generate"])
def test_the_device_is_an_option(verb, saved):
    path = saved(classifier())
    output, _ = invoke(verb, path, "the cat", "--device", "cpu", "--json")
    assert '"label"' in output
    _, error = invoke(verb, path, "the cat", "--device", "tpu9")
    assert "device 'tpu9' is unknown" in error
