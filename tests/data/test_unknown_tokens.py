import re
import warnings

import pytest

import zoo

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
SPEC = {
    "zoo": 1,
    "name": "letters",
    "extends": "lm-small",
    "model": {"embedding": {"vocab": 9, "dim": 8}, "decoder": {"layers": 1}},
    "preprocessing": {"target": {"type": "text", "tokenizer": "letters.json"}},
    "train": {
        "data": {"type": "plain-text", "files": "train.txt"},
        "optimiser": {"type": "adamw", "lr": 1e-3},
        "steps": 1,
    },
}


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Return a function that trains on a text, with a tokenizer of the letters a to d."""
    monkeypatch.chdir(tmp_path)

    def train(text, data=SPEC["train"]["data"], **section):
        (tmp_path / "letters.txt").write_text("abcd\n")
        (tmp_path / "train.txt").write_text(text, newline="")
        zoo.train_tokenizer("letters.txt", "letters.json", type="characters", special=SPECIAL)
        spec = SPEC | {"train": SPEC["train"] | {"data": data, **section}}
        return zoo.train(spec, output="run", device="cpu")

    return train


def test_many_unknown_tokens_are_reported(train):
    with pytest.warns(zoo.ZooWarning, match="75% of the tokens of 'target' are unknown .*case"):
        train("aBCD\nBCDa\n")


def test_few_unknown_tokens_are_reported_with_share_and_symbols(train):
    with pytest.warns(zoo.ZooWarning, match=r"^0\.99% of .*\(2 of 202, in 2 ex.*: 'é' \(2\);"):
        train("abcd" * 25 + "é\n" + "abcd" * 25 + "é\n")


@pytest.mark.parametrize("symbol", ["\n", "\t", "  ", "\r", "e\u0301"])
def test_unknown_white_space_and_marks_are_named(train, symbol):
    data = {"type": "plain-text", "files": "train.txt", "unit": "document"}
    with pytest.warns(zoo.ZooWarning, match=re.escape(f"{symbol[-1]!r} (")):
        train(f"abcd{symbol}dcba\n", data)


def test_known_texts_are_not_reported(train):
    with warnings.catch_warnings():
        warnings.simplefilter("error", zoo.ZooWarning)
        train("abcdabcdabcd\n")


def test_unknown_tokens_of_validation_data_are_reported(train, tmp_path):
    (tmp_path / "valid.txt").write_text("abc\nabx\n")
    validation = {"type": "plain-text", "files": "valid.txt"}
    with pytest.warns(zoo.ZooWarning, match=r"in 2 examples of the validation data\): 'x' \(1\)"):
        train("abcd\n", validation=validation)
