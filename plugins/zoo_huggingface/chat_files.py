"""The chat template of a folder, with the special tokens that it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import read_json

TEMPLATE_FILE, CONFIG_FILE = "chat_template.jinja", "tokenizer_config.json"
_MAX_BYTES = 1_000_000
_MAX_CONFIG = 10_000_000
_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")


def read_chat_template(folder: Path) -> Mapping[str, Any] | None:
    """Return {"template": TEXT, "tokens": {NAME: TEXT}}, or None if the folder has no template.

    Of several named templates, the one named "default" is used. The file of a template takes
    precedence over the config, as in transformers.
    """
    file = folder / CONFIG_FILE
    config = read_json(file, _MAX_CONFIG) if file.is_file() else {}
    config = config if isinstance(config, Mapping) else {}
    template = config.get("chat_template")
    if isinstance(template, list):
        named = {row.get("name"): row for row in template if isinstance(row, Mapping)}
        template = named.get("default", {}).get("template")
    if (folder / TEMPLATE_FILE).is_file():
        template = _read_text(folder / TEMPLATE_FILE)
    if not isinstance(template, str):
        return None
    tokens = {name: _content(config.get(name)) for name in _TOKENS}
    return {"template": template, "tokens": {n: t for n, t in tokens.items() if t is not None}}


def _content(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, Mapping) else token
    return content if isinstance(content, str) else None


def _read_text(file: Path) -> str:
    try:
        if (size := file.stat().st_size) > _MAX_BYTES:
            raise ZooError(f"{file} has {size:,} bytes; at most {_MAX_BYTES:,} are allowed")
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ZooError(f"{file} cannot be read: {error}") from None
