"""Rows of several examples."""

import json

import numpy as np
import pytest
import torch

import zoo
from zoo import DataError, SpecError
from zoo.data.selection import pack_rows
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

ANSWERS = ["a mat", "the cat", "a", "the mat the cat a mat a cat a", "cat", "mat a"]


def test_rows_are_filled_by_the_longest_examples_first():
    assert [row.tolist() for row in pack_rows(np.array([3, 5, 2, 4, 1, 7]), 8)] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 100, 500)
    rows = pack_rows(lengths, 128)
    assert sorted(np.concatenate(rows).tolist()) == list(range(500))
    used = np.array([lengths[row].sum() for row in rows])
    assert used.max() <= 128
    assert used.mean() > 0.97 * 128


def _spec(folder, position="learned", **batch):
    (folder / "words.json").write_text(EXAMPLE_TOKENIZER)
    messages = [
        [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": text}]
        for text in ANSWERS
    ]
    lines = "".join(json.dumps({"messages": each}) + "\n" for each in messages)
    (folder / "chats.jsonl").write_text(lines)
    positions = {"learned": {"type": "learned", "length": 32}}
    fields = {"target": {"column": "messages", "content": "messages"}}
    data = {"type": "json-lines", "file": str(folder / "chats.jsonl"), "fields": fields}
    return {
        "zoo": 1,
        "name": "chat",
        "model": {
            "type": "language-model",
            "embedding": {"type": "token", "vocab": 9, "dim": 8, "padding": None},
            "decoder": {
                "type": "transformer",
                "layers": 2,
                "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
                "feed_forward": {"hidden": 16},
                "position": positions.get(position, position),
            },
            "bos": None,
            "eos": 8,
        },
        "objective": "cross-entropy",
        "preprocessing": {"target": {"type": "chat", "tokenizer": str(folder / "words.json")}},
        "train": {"data": data, "optimiser": "adamw", "batch": batch, "steps": 1},
    }


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "alibi", "t5"])
@pytest.mark.parametrize("accelerated", [False, True])
def test_the_loss_of_packed_rows_is_the_mean_of_the_answers_alone(tmp_path, position, accelerated):
    spec = _spec(tmp_path, position, items=8, pack=24)
    model, objective = zoo.compose(spec), zoo.objective(spec)
    if accelerated:
        zoo.accelerate(model)
    (update,) = zoo.batches(spec, model).epoch(0)
    (batch,) = update.batches
    assert len(batch["target"]) == 3
    assert batch["target"].shape[1] <= 24
    assert sorted(update.examples) == list(range(len(ANSWERS)))
    single = _spec(tmp_path, position, items=1)
    parts = [part.batches[0] for part in zoo.batches(single, model).epoch(0)]
    assert len(parts) == len(ANSWERS)
    outputs = [model(part) for part in parts]
    counts = torch.tensor([part.mask.sum() for part in outputs])
    losses = torch.stack([objective(part) for part in outputs])
    packed = model(batch)
    assert packed.mask.sum() == counts.sum()
    expected = (losses * counts).sum() / counts.sum()
    torch.testing.assert_close(objective(packed), expected, rtol=0, atol=1e-6)
    losses = (objective(packed), expected)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_validation_data_is_not_packed(tmp_path):
    spec = _spec(tmp_path, items=8, pack=24)
    spec["train"]["validation"] = spec["train"]["data"]
    model = zoo.compose(spec)
    (update,) = zoo.batches(spec, model, "validation").epoch(0)
    assert "segments" not in update.batches[0]
    assert len(update.batches[0]["target"]) == len(ANSWERS)


def test_examples_that_do_not_fit_into_a_row_raise_or_are_dropped(tmp_path):
    spec = _spec(tmp_path, items=8, pack=8)
    with pytest.raises(DataError, match=r":4: the example has \d+ tokens, but a row has "):
        zoo.batches(spec, zoo.compose(spec))
    spec = _spec(tmp_path, items=8, pack=8, drop_long=8)
    batches = zoo.batches(spec, zoo.compose(spec))
    assert batches.skipped


def test_models_without_segments_and_blocks_are_rejected(tmp_path):
    spec = _spec(tmp_path, items=8, pack=24)
    spec["model"]["decoder"] = {"type": "plain-rnn", "cell": "lstm", "hidden": 4, "init": "zeros"}
    with pytest.raises(SpecError, match=r"train\.batch\.pack: model .* has no 'segments'; remove"):
        zoo.check(spec)
    with pytest.raises(SpecError, match=r"train\.batch: 'pack' keeps examples whole"):
        zoo.check(_spec(tmp_path, items=8, pack=24, block=24))
