"""Tokenizers that make the library panic raise ZooError."""

import json

import pytest
from tokenizers import Tokenizer as Library, models

from zoo.data.tokenizer import Tokenizer, read_tokenizer
from zoo.errors import ZooError

BASE = json.loads(Library(models.WordLevel({"a": 0}, unk_token="a")).to_str())
ON_READING = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}
ON_ENCODING = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}],
        "pair": [],
        "special_tokens": {},
    }
}


def test_a_panic_on_reading_raises_zoo_error():
    with pytest.raises(ZooError, match=r"is not valid JSON of the tokenizers library: .*charsmap"):
        Tokenizer(json.dumps({**BASE, **ON_READING}))


def test_a_panic_on_encoding_raises_zoo_error():
    tokenizer = Tokenizer(json.dumps({**BASE, **ON_ENCODING}))
    with pytest.raises(ZooError, match="the tokenizer cannot encode the text: no entry found"):
        tokenizer.encode(["a"])


def test_a_directory_or_a_device_is_not_a_tokenizer(tmp_path):
    with pytest.raises(ZooError, match="is a directory; expected the JSON file of a tokenizer"):
        read_tokenizer(tmp_path)
    with pytest.raises(ZooError, match="null is not a regular file; expected the JSON file"):
        read_tokenizer("/dev/null")
