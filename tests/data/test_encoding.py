"""Encoding before training: examples whose keys do not fit each other are reported."""

import json

import pytest
from evaluation_kit import word_tokenizer

import zoo

ROWS = [
    {"words": "w3 w4 w5 w6", "tags": ["a", "b", "a", "b"]},
    {"words": "w3 w4 w5", "tags": ["a", "b"]},
    {"words": "w3 w4", "tags": ["a", "b"]},
]


@pytest.fixture
def tagger(tmp_path):
    """Return the spec of a tagger; the second example has too few tags."""
    (tmp_path / "words.json").write_text(word_tokenizer(16))
    (tmp_path / "tags.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    columns = {"source": {"column": "words"}, "target": {"column": "tags", "content": "labels"}}
    return {
        "zoo": 1,
        "name": "tagger",
        "model": {
            "type": "tagger",
            "source": {"type": "token", "vocab": 16, "dim": 4},
            "encoder": {"type": "gru", "hidden": 4},
            "labels": 2,
        },
        "preprocessing": {
            "source": {"type": "text", "tokenizer": str(tmp_path / "words.json")},
            "target": "labels",
        },
        "train": {
            "data": {
                "type": "json-lines",
                "file": str(tmp_path / "tags.jsonl"),
                "fields": columns,
            },
            "optimiser": "adamw",
            "steps": 1,
        },
    }


def test_keys_that_share_a_dimension_have_equal_lengths(tagger):
    with pytest.raises(zoo.DataError, match=r"tags\.jsonl:2: 'target' has 2 values"):
        zoo.batches(tagger, zoo.compose(tagger))
    tagger["train"]["bad_data"] = "skip"
    batches = zoo.batches(tagger, zoo.compose(tagger))
    assert batches.skipped == {"'target' has 2 values, but expected 3, as in 'source'": 1}
    (update,) = batches.epoch(0)
    (batch,) = update.batches
    assert sorted(batch["mask"].sum(dim=1).tolist()) == [2, 4]
