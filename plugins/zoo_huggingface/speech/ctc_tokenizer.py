"""The tokenizer of CTC models, which transformers describes in ``vocab.json``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError, ZooWarning
from zoo_huggingface.config_fields import config_error, get_value, read_json

VOCAB, CONFIG = "vocab.json", "tokenizer_config.json"
_SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def read_ctc_tokenizer(folder: Path) -> Mapping[str, Any] | None:
    """Return the content of a ``tokenizer.json`` for the characters of ``vocab.json``.

    The word delimiter stands for spaces. The result is None without a vocabulary; one that is not
    supported is reported, and the model is imported without a tokenizer.
    """
    if not (folder / VOCAB).is_file():
        return None
    try:
        config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        return _tokenizer(read_json(folder / VOCAB), config)
    except ZooError as error:
        warnings.warn(
            f"{error}; the model is imported without a tokenizer and takes token IDs",
            ZooWarning,
            stacklevel=2,
        )
        return None


def _tokenizer(vocab: Any, config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        raise ZooError(f"{CONFIG} should contain a JSON object")
    if not isinstance(vocab, Mapping) or not all(type(token) is int for token in vocab.values()):
        raise ZooError(f"{VOCAB} should map characters to IDs; others, by language, are not read")
    if get_value(config, "do_lower_case", bool, False, file=CONFIG):
        raise config_error("do_lower_case", True, "it converts to upper case", CONFIG)
    special = [_content(config.get(key, default)) for key, default in _SPECIAL.items()]
    delimiter = _content(config.get("word_delimiter_token", "|"))
    space = config.get("replace_word_delimiter_char", " ")
    unknown = _content(config.get("unk_token", _SPECIAL["unk_token"]))
    if unknown not in vocab:
        raise config_error("unk_token", unknown, f"it is not in {VOCAB}", CONFIG)
    longer = [token for token in vocab if len(token) != 1 and token not in (*special, delimiter)]
    if longer:
        raise ZooError(f"{VOCAB}: token {longer[0]!r} has several characters")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(name, vocab[name]) for name in special if name in vocab],
        "normalizer": {"type": "Replace", "pattern": {"String": space}, "content": delimiter},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "[\\s\\S]"},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": delimiter}, "content": space},
                {"type": "Fuse"},
                {"type": "Replace", "pattern": {"Regex": "^ +| +$"}, "content": ""},
            ],
        },
        "model": {"type": "WordLevel", "vocab": dict(vocab), "unk_token": unknown},
    }


def _content(token: Any) -> str:
    """Return the text of a token, which may be an object with settings."""
    return str(token.get("content") if isinstance(token, Mapping) else token)


def _added(content: str, number: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": True}
