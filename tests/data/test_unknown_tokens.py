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

    def train(text):
        (tmp_path / "letters.txt").write_text("abcd\n")
        (tmp_path / "train.txt").write_text(text)
        zoo.train_tokenizer("letters.txt", "letters.json", type="characters", special=SPECIAL)
        return zoo.train(SPEC, output="run", device="cpu")

    return train


def test_many_unknown_tokens_are_reported(train):
    with pytest.warns(zoo.ZooWarning, match="75% of the tokens of 'target' are unknown .*case"):
        train("aBCD\nBCDa\n")


def test_few_unknown_tokens_are_not(train):
    with warnings.catch_warnings():
        warnings.simplefilter("error", zoo.ZooWarning)
        train("abcdabcdabcdx\n")
