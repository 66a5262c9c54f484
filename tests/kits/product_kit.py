"""Values of every content for every key of a model's batch."""

import inspect
import itertools
import json

import numpy as np
from evaluation_kit import word_tokenizer

import zoo
from zoo.interfaces import Audio, Field
from zoo.registry.blueprint import Blueprint

CONTENTS = ("text", "texts", "label", "labels", "image", "audio", "array")
PARAMS = {"audio": {"rate": 8000}, "label": {"classes": ["w3", "w4"]}}
PARAMS["labels"] = PARAMS["label"]


def piece_tokenizer():
    """Return the JSON of a byte-pair encoding with one token for `w3` and one for `w4`.

    They are never split, so that keys that share a dimension keep equal lengths.
    """
    tokenizer = json.loads(word_tokenizer(5))
    replaced = [
        {"type": "Replace", "pattern": {"String": word}, "content": letter}
        for word, letter in (("w3", "x"), ("w4", "y"))
    ]
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": replaced}
    vocab = {"<pad>": 0, "<s>": 1, "</s>": 2, "x": 3, "y": 4, "xy": 5}
    tokenizer["model"] = {"type": "BPE", "vocab": vocab, "merges": [["x", "y"]]}
    return json.dumps(tokenizer)


TOKENIZER = word_tokenizer(7)
TOKENIZERS = {"split-text": piece_tokenizer()}


def field_options(key, schema, preprocessors):
    """Yield each field of a key with each preprocessor (or None) that can be built for it."""
    for content, cls in itertools.product(CONTENTS, (None, *preprocessors)):
        declared = schema._replace(dtype="float" if schema.dtype == "number" else schema.dtype)
        field = Field(content, declared if content == "array" else None)
        if cls is None:
            yield field, None
            continue
        given = {"schema": schema, "stored": TOKENIZERS.get(cls.name, TOKENIZER)}
        given = {name: given[name] for name in inspect.signature(cls).parameters if name in given}
        try:
            built = Blueprint.of(cls, **PARAMS.get(cls.name, {})).build(**given)
            built.outputs(key)
        except zoo.ZooError:
            continue
        yield field, built


def field_value(field, schema, size, rng):
    """Return a valid value; dimensions without a fixed size have this size."""
    words = ["w3", "w4"]
    rank = len(schema.dims)
    if field.content in ("text", "label"):
        return " ".join(rng.choice(words, 1 if rank == 1 or field.content == "label" else size))
    if field.content == "texts":
        count = schema.dims[1] if isinstance(schema.dims[1], int) else size
        return [" ".join(rng.choice(words, size)) for _ in range(count)]
    if field.content == "labels":
        return [words if rank == 3 else str(rng.choice(words)) for _ in range(size)]
    if field.content == "image":
        return rng.integers(0, 256, (size + 5, size + 4, 1), dtype=np.uint8)
    if field.content == "audio":
        return Audio(rng.uniform(-1, 1, 40 * size).astype(np.float32), 8000)
    shape = [dim if isinstance(dim, int) else size for dim in schema.dims[1:]]
    dtypes = {"integer": np.int64, "bool": np.bool_}
    return np.ones(shape, dtypes.get(field.schema.dtype, np.float32))
