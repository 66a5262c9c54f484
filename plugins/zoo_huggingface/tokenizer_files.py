"""The tokenizer of a folder: its padding token, and lower case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zoo.plugin import Tokenizer
from zoo_huggingface.config_fields import read_json

TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")
MAX_TOKENIZER_BYTES = 200_000_000


def read_padding_id(folder: Path) -> dict[str, int | None]:
    """Return the padding of the folder's tokenizer as {"tokenizer_padding": ID}.

    The ID is None if the tokenizer has no padding token; the result is empty if the files do not
    contain it.
    """
    configs = [_read_object(folder / name) for name in TOKENIZER_FILES]
    tokenizer = _read_object(folder / "tokenizer.json")
    for config in configs:
        if "pad_token" not in config:
            continue
        token = config["pad_token"]
        if token is None:
            return {"tokenizer_padding": None}
        content = token.get("content") if isinstance(token, Mapping) else token
        for ids in _vocabularies(tokenizer, configs[0]):
            if type(ids.get(content)) is int:
                return {"tokenizer_padding": ids[content]}
    padding = tokenizer.get("padding")
    pad_id = padding.get("pad_id") if isinstance(padding, Mapping) else None
    return {"tokenizer_padding": pad_id} if type(pad_id) is int else {}


def adds_padding(folder: Path) -> bool:
    """Return whether the folder's tokenizer adds its padding token to every text."""
    pad_id = read_padding_id(folder).get("tokenizer_padding")
    return pad_id in Tokenizer(json.dumps(_read_object(folder / "tokenizer.json"))).added_ids


def read_tokenizer_content(folder: Path, *, lowercase: bool) -> Mapping[str, Any]:
    """Return ``tokenizer.json`` with what other files of the folder say about it.

    Args:
        folder: a folder with the file.
        lowercase: whether the first normaliser converts texts to lower case.
    """
    tokenizer = dict(_read_object(folder / "tokenizer.json"))
    if lowercase:
        tokenizer["normalizer"] = _lowercased(tokenizer.get("normalizer"))
    pad_id = read_padding_id(folder).get("tokenizer_padding")
    tokens = {number: name for ids in _vocabularies(tokenizer, {}) for name, number in ids.items()}
    if pad_id in tokens and tokenizer.get("padding") is None:
        tokenizer["padding"] = {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": pad_id,
            "pad_type_id": 0,
            "pad_token": tokens[pad_id],
        }
    return tokenizer


def _lowercased(normalizer: Any) -> dict[str, Any]:
    """Return a normaliser that converts to lower case first."""
    is_sequence = isinstance(normalizer, Mapping) and normalizer.get("type") == "Sequence"
    steps = normalizer["normalizers"] if is_sequence else [normalizer] if normalizer else []
    if not any(isinstance(step, Mapping) and step.get("type") == "Lowercase" for step in steps):
        steps = [{"type": "Lowercase"}, *steps]
    return {"type": "Sequence", "normalizers": steps}


def _vocabularies(
    tokenizer: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[Mapping[Any, Any]]:
    """Yield mappings of tokens to IDs: added tokens first, then the vocabulary."""
    added = tokenizer.get("added_tokens")
    if isinstance(added, list):
        rows = [row for row in added if isinstance(row, Mapping)]
        yield {str(row.get("content")): row.get("id") for row in rows}
    decoder = config.get("added_tokens_decoder")
    if isinstance(decoder, Mapping):
        yield {
            str(row.get("content")): int(key)
            for key, row in decoder.items()
            if isinstance(row, Mapping) and str(key).isdecimal()
        }
    model = tokenizer.get("model")
    vocab = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocab, Mapping):
        yield vocab
    elif isinstance(vocab, list):  # a unigram model: pairs of token and score
        yield {row[0]: i for i, row in enumerate(vocab) if isinstance(row, list) and row}


def _read_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file, empty if there is none."""
    content = read_json(path, MAX_TOKENIZER_BYTES) if path.is_file() else None
    return content if isinstance(content, Mapping) else {}
