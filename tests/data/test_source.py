"""Batches against their examples, with the datasets and preprocessors of the plugins."""

import struct

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

import zoo

TRAIN = {"optimiser": "adam", "batch": {"items": 5}, "epochs": 1}


def _images(folder):
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (12, 28, 28), dtype=np.uint8), rng.integers(0, 10, 12)
    (folder / "images").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 12, 28, 28) + pixels.tobytes())
    (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 12) + bytes(labels.tolist()))
    data = {"type": "idx", "images": str(folder / "images"), "labels": str(folder / "labels")}
    return {
        "extends": "ram-mnist",
        "preprocessing": {
            "source": {"type": "image", "size": 28, "flip": True, "shift": 2, "mean": 0.1},
            "target": {"type": "label"},
        },
        "train": {"data": {"type": "split", "part": "train", "data": data}, **TRAIN},
    }


def _stories(folder):
    words = ["[PAD]", "mary", "john", "went", "home", "ran", "where", "is", "the", "garden", "big"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(words[:1])
    tokenizer.save(str(folder / "words.json"))
    lines = ["1 mary went home", "2 where is mary?\thome", "3 john ran the big garden home"]
    lines += ["4 where is john?\tgarden", "1 john ran", "2 john went", "3 where is john?\thome"]
    (folder / "qa.txt").write_text("\n".join(lines * 3) + "\n")
    text = {"type": "text", "tokenizer": str(folder / "words.json")}
    data = {"type": "stories", "files": str(folder / "qa.txt"), "target": "text"}
    return {
        "extends": "memory-network-2015",
        "model": {"source": {"vocab": 11}},
        "preprocessing": {"story": {**text, "type": "text-list"}, "question": text, "target": text},
        "train": {"data": {**data, "punctuation": False}, **TRAIN},
    }


@pytest.mark.parametrize("make", [_images, _stories])
def test_a_batch_has_the_values_of_its_examples(make, tmp_path):
    spec = {"zoo": 1, "name": "test", **make(tmp_path)}
    model = zoo.compose(spec)
    batches = zoo.batches(spec, model)
    data, sampler = batches.dataset, batches.sampler()
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        for update, rows in zip(batches.epoch(epoch), sampler, strict=True):
            (batch,) = update.batches
            model.check_batch(batch)
            expected = data.collate([data[row] for row in rows])
            assert batch.keys() == expected.keys()
            for key, tensor in expected.items():
                torch.testing.assert_close(batch[key], tensor, rtol=0, atol=0)
    if make is _stories:
        found = {tuple(row.shape) for row in (data[row]["story"] for row in range(len(data)))}
        assert found == {(1, 3), (2, 6), (2, 2)}
