"""Training, evaluation, generation and prediction make the same tensors from the same texts."""

import pytest
import torch
from data_kit import ListDataset

import zoo
from zoo.data.batches import open_batches
from zoo.data.preprocessing import build_preprocessors
from zoo.plugin import Blueprint, Field
from zoo.spec.training import Batching
from zoo_preprocessing.split_text import EXAMPLE_PIECES
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

WORDS = ["the cat sat", "a mat", "the cat sat on a mat"]
PIECES = ["cat at", "tact", "cat cat at a"]
TOKEN = {"type": "token", "vocab": 12, "dim": 4}
TEXTS = {
    "text": ({"type": "text"}, EXAMPLE_TOKENIZER, WORDS),
    "split-text": ({"type": "split-text", "rate": 0.0}, EXAMPLE_PIECES, PIECES),
}


def _compose(model, preprocessing, tokenizer):
    spec = {"zoo": 1, "name": "same", "model": model, "preprocessing": preprocessing}
    composed = zoo.compose(spec)
    texts = ("text", "split-text", "masked-text", "text-list")
    keys = [key for key, part in preprocessing.items() if part["type"] in texts]
    composed.tokenizer = dict.fromkeys(keys, tokenizer)
    return composed


def _batches(model, columns, contents):
    """Return the batch of training and the batch of evaluation."""
    fields = {key: Field(content) for key, content in contents.items()}
    dataset = Blueprint(ListDataset, {"columns": columns, "fields": fields})
    found = []
    for evaluation in (False, True):
        batches = open_batches(
            dataset,
            model,
            build_preprocessors(model),
            Batching(items=8, shuffle=False, buckets=0),
            seed=0,
            evaluation=evaluation,
        )
        (update,) = batches.epoch(0)
        found.append(update.batches[0])
    return found


def _generated(model, texts, monkeypatch):
    """Return the batch that `zoo.generate` passes to the model."""
    seen, generate = [], model.generate

    def record(batch, *args, **options):
        seen.append(batch)
        return generate(batch, *args, **options)

    monkeypatch.setattr(model, "generate", record)
    zoo.generate(model, texts, sampler="greedy", max_length=2)
    return seen[0]


def _predicted(model, inputs):
    """Return the batch that `zoo.predict` passes to the model."""
    seen = []
    hook = model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    zoo.predict(model, inputs)
    hook.remove()
    return seen[0]


def _assert_same(first, *others):
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)


@pytest.mark.parametrize("kind", TEXTS)
def test_sources_of_generation(kind, monkeypatch):
    part, tokenizer, texts = TEXTS[kind]
    parts = {
        "type": "seq2seq",
        "source": TOKEN,
        "encoder": {"type": "gru", "hidden": 4},
        "decoder": {"type": "plain-rnn", "hidden": 4},
    }
    model = _compose(parts, {"source": part, "target": part}, tokenizer)
    contents = {"source": "text", "target": "text"}
    training, evaluation = _batches(model, {"source": texts, "target": texts}, contents)
    generated = _generated(model, texts, monkeypatch)
    _assert_same(training["source"], evaluation["source"], generated["source"])
    _assert_same(training["target"], evaluation["target"])


@pytest.mark.parametrize("kind", TEXTS)
def test_prompts_are_targets_without_the_end_token(kind, monkeypatch):
    part, tokenizer, texts = TEXTS[kind]
    decoder = {"type": "plain-rnn", "hidden": 4, "init": "zeros"}
    parts = {"type": "language-model", "embedding": TOKEN, "decoder": decoder}
    model = _compose(parts, {"target": part}, tokenizer)
    training, evaluation = _batches(model, {"target": texts}, {"target": "text"})
    prompts = _generated(model, texts, monkeypatch)["prompt"]
    _assert_same(training["target"], evaluation["target"])
    field = model.batch_schema()["target"]
    for prompt, target in zip(prompts.tolist(), training["target"].tolist(), strict=True):
        added = len(target) - len(prompt)
        full = [token for token in prompt if token != field.pad] + list(field.suffix)
        assert full + [field.pad] * (len(target) - len(full)) == target
        assert added == len(field.suffix)


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_of_prediction(kind):
    part, tokenizer, texts = TEXTS[kind]
    parts = {
        "type": "classifier",
        "source": TOKEN,
        "encoder": {"type": "gru", "hidden": 4},
        "classes": 3,
    }
    label = {"type": "label", "classes": ["x", "y", "z"]}
    model = _compose(parts, {"source": part, "target": label}, tokenizer)
    columns = {"source": texts, "target": ["x", "y", "z"]}
    training, evaluation = _batches(model, columns, {"source": "text", "target": "label"})
    _assert_same(training, evaluation)
    _assert_same(training["source"], _predicted(model, texts)["source"])


def test_lists_of_texts_of_prediction():
    text = {"type": "text"}
    preprocessing = {"story": {"type": "text-list"}, "question": text, "target": text}
    parts = zoo.compose("memory-network-tiny").spec["model"]
    model = _compose(parts, preprocessing, EXAMPLE_TOKENIZER)
    columns = {"story": [WORDS, WORDS[:1]], "question": WORDS[:2], "target": ["cat", "mat"]}
    contents = {"story": "texts", "question": "text", "target": "text"}
    training, evaluation = _batches(model, columns, contents)
    inputs = [
        {"story": story, "question": question}
        for story, question in zip(columns["story"], columns["question"], strict=True)
    ]
    predicted = _predicted(model, inputs)
    _assert_same(training, evaluation)
    for key in ("story", "question"):
        _assert_same(training[key], predicted[key])


def test_masked_texts_have_the_same_targets():
    parts = {"type": "masked-lm", "source": TOKEN, "encoder": {"type": "gru", "hidden": 4}}
    model = _compose(parts, {"source": {"type": "masked-text"}}, EXAMPLE_TOKENIZER)
    training, evaluation = _batches(model, {"source": WORDS}, {"source": "text"})
    _assert_same(training["target"], evaluation["target"])
    assert training["source"].shape == training["target"].shape
