"""Trainings that take preprocessing and parts from a model with weights."""

import pytest
import torch
from tokenizers import Tokenizer
from training_kit import LETTERS, Messages, weights, write_tokenizer

import zoo

CSV = {
    "type": "csv",
    "fields": {"source": {"column": "text"}, "target": {"column": "mood", "content": "label"}},
}
TRAIN = {"optimiser": {"type": "sgd", "lr": 1e-30}, "steps": 1, "batch": {"items": 2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models with weights and tokenizers but without preprocessing, and data."""
    path = tmp_path_factory.mktemp("folder")
    write_tokenizer(path / "words.json", LETTERS)
    words = Tokenizer.from_file(str(path / "words.json"))
    words.add_special_tokens(["[MASK]"])
    tokenizer = words.to_str()
    for name, keys in {
        "bert-tiny": ["source"],
        "minilm-tiny": ["source", "target"],
        "gpt2-tiny": ["target"],
    }.items():
        model = zoo.compose(name, seed=3)
        model.tokenizer = dict.fromkeys(keys, tokenizer)
        zoo.save(model, path / f"{name}.safetensors")
    (path / "moods.csv").write_text("text,mood\na b,good\nc d,bad\ne f,good\n")
    (path / "numbers.csv").write_text("text,mood\na b,0.5\nc d,1.5\n")
    (path / "texts.txt").write_text("a b c\nd e\nf a\n")
    (path / "tags.conll").write_text("a O\nb B-X\n\nc O\nd O\n")
    return path


def _train(folder, base, output, data, **sections):
    """Train a spec of a few lines; return what is taken, the model and the preprocessing."""
    spec = {"extends": str(folder / f"{base}.safetensors"), "name": "mine", **sections}
    data = {key: str(folder / value) if key in ("file", "files") else value for key, value in data}
    messages = Messages()
    zoo.train(
        {**spec, "train": {**TRAIN, "data": data}},
        output=output,
        device="cpu",
        callbacks=[messages],
    )
    return messages.texts, zoo.load(output)


def _types(model):
    return {key: each["type"] for key, each in model.spec["preprocessing"].items()}


def _assert_equal_parts(folder, base, run, prefixes):
    ours, theirs = weights(run / "model.safetensors"), weights(folder / f"{base}.safetensors")
    names = [name for name in ours if name.startswith(prefixes)]
    assert names
    for name in names:  # parameters of 0 change by the learning rate
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-20)


@pytest.mark.parametrize("base", ["bert-tiny", "minilm-tiny"])
def test_a_classifier_has_source_and_encoder_of_the_model_it_extends(folder, tmp_path, base):
    data = {**CSV, "file": "moods.csv"}.items()
    head = {"type": "classifier", "classes": 2}
    lines, model = _train(folder, base, tmp_path / "run", data, model=head)
    assert "fresh: out (2 tensors): not in the base" in lines
    assert "tokenizer of the base: source" in lines
    _assert_equal_parts(folder, base, tmp_path / "run", ("source.", "encoder."))
    assert _types(model) == {"source": "preprocessing:text", "target": "preprocessing:label"}
    assert zoo.predict(model, ["a b"])[0].label in ("good", "bad")


def test_a_tagger_has_the_encoder_of_the_model_it_extends(folder, tmp_path):
    data = {"type": "conll", "file": "tags.conll"}.items()
    head = {"type": "tagger", "labels": 2, "words": True}
    _, model = _train(folder, "bert-tiny", tmp_path / "run", data, model=head)
    _assert_equal_parts(folder, "bert-tiny", tmp_path / "run", ("source.", "encoder."))
    assert _types(model)["source"] == "preprocessing:words"


def test_a_regressor_has_the_encoder_of_the_model_it_extends(folder, tmp_path):
    fields = {"source": {"column": "text"}, "target": {"column": "mood", "content": "number"}}
    data = {"type": "csv", "file": "numbers.csv", "fields": fields}.items()
    sections = {"model": {"type": "regressor"}, "objective": "mean-squared-error"}
    _, model = _train(folder, "bert-tiny", tmp_path / "run", data, **sections)
    _assert_equal_parts(folder, "bert-tiny", tmp_path / "run", ("source.", "encoder."))
    assert isinstance(zoo.predict(model, ["a b"])[0].values[0], float)


def test_a_language_model_with_a_tokenizer_is_tuned_without_preprocessing(folder, tmp_path):
    data = {"type": "plain-text", "files": "texts.txt"}.items()
    _, model = _train(folder, "gpt2-tiny", tmp_path / "run", data)
    assert _types(model) == {"target": "preprocessing:text"}
    stored = Tokenizer.from_str(model.tokenizer["target"])
    assert stored.get_vocab()["[MASK]"] == 4 + len(LETTERS)


def test_a_masked_language_model_is_tuned_without_preprocessing(folder, tmp_path):
    fields = {"source": {"column": "text"}}
    data = {"type": "csv", "file": "moods.csv", "fields": fields}.items()
    _, model = _train(folder, "bert-tiny", tmp_path / "run", data)
    assert _types(model) == {"source": "preprocessing:masked-text"}


def test_a_resumed_run_has_the_preprocessing_that_was_found(folder, tmp_path):
    spec = {
        "extends": str(folder / "gpt2-tiny.safetensors"),
        "name": "mine",
        "train": {**TRAIN, "data": {"type": "plain-text", "files": str(folder / "texts.txt")}},
    }
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    more = zoo.train(
        spec, output=tmp_path / "run", device="cpu", resume=True, overrides=["train.steps=2"]
    )
    assert more.step == 2
