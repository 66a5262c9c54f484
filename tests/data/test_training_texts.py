"""Tokenizers are trained on the texts that the model is trained on."""

import json

import pytest

from zoo import ZooError
from zoo.data.training_texts import spec_texts, spec_unit
from zoo.spec.spec import load_spec


def spec(data, base="lm-small"):
    train = {"data": data, "optimiser": {"type": "adamw", "lr": 1e-3}, "steps": 1}
    return load_spec({"zoo": 1, "name": "own", "extends": base, "train": train})


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("ab\ncd \n\nef")
    (tmp_path / "b.txt").write_text("u\nv\nw\n")
    rows = [{"source": "s", "target": ["t1", "t2"]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("line", ["ab", "cd ", "ef"]),
        ("paragraph", ["ab\ncd ", "ef"]),
        ("document", ["ab\ncd \n\nef"]),
    ],
)
def test_texts_are_the_examples_of_the_training_data(files, unit, expected):
    own = spec({"type": "plain-text", "files": "a.txt", "unit": unit})
    texts = spec_texts(own)
    assert list(texts()) == list(texts()) == expected
    assert spec_unit(own) == unit
    split = {"type": "split", "part": "train", "data": own.resolve()["train"]["data"]}
    assert spec_unit(spec(split)) == unit


def test_texts_of_all_keys_or_one(files):
    data = {"type": "parallel-text", "source": "a.txt", "target": "b.txt"}
    own = spec(data, "transformer-tiny")
    assert spec_unit(own) is None
    with open("a.txt", "w") as file:
        file.write("x\ny\nz\n")
    assert list(spec_texts(own)()) == ["x", "y", "z", "u", "v", "w"]
    assert list(spec_texts(own, "target")()) == ["u", "v", "w"]
    with pytest.raises(ZooError, match=r"no texts of 'image' .*: 'source', 'target'\)"):
        spec_texts(own, "image")


def test_a_spec_without_training_data_is_rejected():
    with pytest.raises(ZooError, match="has no section train"):
        spec_texts(load_spec("lm-small"))
    assert spec_unit(load_spec("lm-small")) is None
