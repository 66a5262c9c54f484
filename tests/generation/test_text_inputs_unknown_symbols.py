"""Symbols that the tokenizer of a model does not know are named."""

import json
import subprocess
import sys

import pytest
from tokenizers import Tokenizer as Backend, models, pre_tokenizers
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.data.tokenizer import Tokenizer
from zoo.generation.text_inputs import describe_unknown

LETTERS = {"<pad>": 0, "<unk>": 1, "a": 2, "b": 3}


def make_tokenizer(model=None, *, words=False):
    backend = Backend(model or models.WordLevel(LETTERS, unk_token="<unk>"))
    characters = pre_tokenizers.Split("", "isolated")
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit() if words else characters
    return backend.to_str()


UNIGRAM = models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -1.0)], 0)


@pytest.mark.parametrize(
    ("model", "words", "texts", "expected"),
    [
        (None, False, ["ab", "aéb1é", "2"], ["é", "1", "2"]),
        (None, True, ["a Ab b", "c a"], ["Ab", "c"]),
        (models.BPE({"a": 0, "b": 1}, []), True, ["a cb b"], ["c"]),  # left out without a token
        (UNIGRAM, True, ["ab 1"], ["1"]),
        (None, False, ["", "ab"], []),
    ],
)
def test_unknown_parts_of_texts(model, words, texts, expected):
    assert Tokenizer(make_tokenizer(model, words=words)).unknown(texts) == expected


def build():
    model = zoo.compose("bahdanau-reversal", seed=0).eval()
    model.tokenizer = {"source": make_tokenizer(), "target": make_tokenizer()}
    return model


def test_the_sentence_names_each_symbol_once_and_not_too_many():
    model = build()
    assert describe_unknown(model, ["abba"]) is None
    sentence = describe_unknown(model, ["aXbX"])
    assert sentence == "the model does not know 'X', so its output may be wrong"
    assert "'9' and 3 more" in describe_unknown(model, ["0123456789xyz"])
    model.tokenizer = None
    assert describe_unknown(model, ["aXbX"]) is None


def test_the_command_warns_on_standard_error(tmp_path):
    path = str(zoo.save(build(), tmp_path / "model.safetensors"))
    options = ["generate", path, "--max-length=3", "--json"]
    command = [sys.executable, "-m", "zoo", *options, "abX"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)
    known = CliRunner().invoke(app, [*options, "ab"])

    json.loads(done.stdout)
    expected = "warning: the model does not know 'X', so its output may be wrong"
    assert expected in done.stderr.splitlines()
    assert known.exit_code == 0
    json.loads(known.stdout)
    assert "does not know" not in known.output
