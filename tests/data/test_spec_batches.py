"""`zoo.batches` from a spec and text files, and the fitted preprocessors of the model."""

import numpy as np
import pytest
import torch
from data_kit import SEQ2SEQ, parallel_columns
from tokenizers import Tokenizer, models, pre_tokenizers

import zoo
from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError

WORDS = ["[PAD]", "[BOS]", "[EOS]", *(f"w{number}" for number in range(3, 50))]


@pytest.fixture
def spec(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(WORDS[:3])
    tokenizer.save(str(tmp_path / "words.json"))
    columns = parallel_columns(40)
    for key, texts in columns.items():
        (tmp_path / key).write_text("\n".join(texts) + "\n")
    text = {"type": "text", "tokenizer": str(tmp_path / "words.json")}
    return {
        **SEQ2SEQ,
        "preprocessing": {"source": text, "target": text},
        "train": {
            "data": {"type": "parallel-text", **{key: str(tmp_path / key) for key in columns}},
            "optimiser": "adamw",
            "batch": {"tokens": 60},
            "epochs": 1,
        },
    }


def test_batches_of_a_spec_train_a_model(spec):
    model, objective = zoo.compose(spec), zoo.objective(spec)
    batches = zoo.batches(spec, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for epoch in range(4):
        for update in batches.epoch(epoch):
            (batch,) = update.batches
            losses.append(objective(model(batch)))
            losses[-1].backward()
            optimiser.step()
            optimiser.zero_grad()
    per_epoch = batches.updates(0)
    assert sum(losses[-per_epoch:]) < sum(losses[:per_epoch])
    assert set(model.tokenizer) == {"source", "target"}
    restored = build_preprocessors(model)
    np.testing.assert_equal(restored["source"].encode("w7 w3"), [7, 3])


def test_a_missing_part_raises_zoo_error(spec):
    model = zoo.compose(spec)
    with pytest.raises(ZooError, match="has no 'validation'; it has 'data'"):
        zoo.batches(spec, model, "validation")
    with pytest.raises(ZooError, match="spec 'tiny' has no section 'train'"):
        zoo.batches(SEQ2SEQ, model)
    del model.spec
    with pytest.raises(ZooError, match="has no spec, which its preprocessors are saved in"):
        zoo.batches(spec, model)
