import json

import numpy as np
import pytest

import zoo
from zoo import DataError
from zoo.plugin import TensorSchema
from zoo_preprocessing.chat import Chat
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

SCHEMA = TensorSchema(("B", "T"), "integer", below=9)
CHAT = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "a mat"}]
TEMPLATE = (
    "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


def chat(**params):
    return Chat(schema=SCHEMA, stored=EXAMPLE_TOKENIZER, **params)


def test_target_and_mask():
    item = chat(template=TEMPLATE)
    arrays = item.transform("target", item.encode(CHAT), np.random.default_rng(0))
    assert arrays["target"].tolist() == [1, 2, 3, 1, 6, 7]
    assert arrays["mask"].tolist() == [False] * 4 + [True] * 2
    assert item.lengths(np.array([item.encode(CHAT).size])).tolist() == [6]
    every = chat(template=TEMPLATE, loss="all")
    arrays = every.transform("target", every.encode(CHAT), np.random.default_rng(0))
    assert arrays["mask"].all()
    assert [row.tolist() for row in item.encode_prompts(["the cat", CHAT])] == [
        [1, 2, 3, 1],
        [1, 2, 3, 1, 6, 7, 1],
    ]


def test_the_template_of_a_file_is_part_of_the_parameters(tmp_path):
    (tmp_path / "a.jinja").write_text(TEMPLATE)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    for name in ("a.jinja", "tokenizer_config.json"):
        item = chat(template_file=str(tmp_path / name))
        assert item.fit([]) == {"template": TEMPLATE}
        saved = chat(template_file="missing", template=TEMPLATE)
        assert np.array_equal(item.encode(CHAT), saved.encode(CHAT))
    with pytest.raises(DataError, match="cannot be read; expected a Jinja template"):
        chat(template_file=str(tmp_path / "none.jinja")).encode(CHAT)


def test_values_that_are_not_conversations_raise():
    with pytest.raises(DataError, match="has no message of the assistant"):
        chat().encode(CHAT[:1])
    with pytest.raises(DataError, match="tokens, more than max_length 3"):
        chat(max_length=3).encode(CHAT)
    for value in ("text", [], [{"role": "user"}]):
        with pytest.raises(DataError, match="expected messages with 'role' and 'content'"):
            chat().encode(value)


def test_the_loss_is_that_of_the_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.json").write_text(EXAMPLE_TOKENIZER)
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": CHAT}) + "\n")
    fields = {"target": {"column": "messages", "content": "messages"}}
    data = {"type": "json-lines", "file": "a.jsonl", "fields": fields}
    spec = {
        "zoo": 1,
        "name": "chat",
        "model": {
            "type": "language-model",
            "embedding": {"type": "token", "vocab": 9, "dim": 4},
            "decoder": {"type": "plain-rnn", "cell": "lstm", "hidden": 4, "init": "zeros"},
            "bos": None,
            "eos": 8,
        },
        "objective": "cross-entropy",
        "preprocessing": {
            "target": {"type": "chat", "tokenizer": "words.json", "template": TEMPLATE}
        },
        "train": {"data": data, "optimiser": {"type": "adamw"}, "batch": {"items": 1}, "steps": 1},
    }
    model = zoo.compose(spec)
    (batch,) = zoo.batches(spec, model).epoch(0)
    tensors = batch.batches[0]
    assert tensors["target"].tolist() == [[1, 2, 3, 1, 6, 7, 8]]
    assert tensors["mask"].tolist() == [[False] * 4 + [True] * 3]
    outputs = model(tensors)
    assert outputs.mask.tolist() == [[False] * 3 + [True] * 3]
