"""Folders of sentence-transformers: a ``modules.json`` that lists pooling and normalisation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import get_path, read_json

_POOLINGS = {"mean": "mean", "cls": "first", "max": "max"}
_POOLING_KEY = re.compile("^pooling_mode_|_tokens?$")
_TEXT_OPTIONS = {
    "sentence_bert_config.json": "do_lower_case",
    "config_sentence_transformers.json": "default_prompt_name",
}
_MODULES = ("Transformer", "Pooling", "Normalize")


def sentence_files(spec: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Return the files of sentence-transformers for a sentence encoder of this width."""
    names = [*_MODULES[:2], *(_MODULES[2:] if get_path(spec, "model.normalise") else ())]
    rows = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{name}" if i else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for i, name in enumerate(names)
    ]
    pooling = get_path(spec, "model.pooling")
    (mode,) = (theirs for theirs, ours in _POOLINGS.items() if ours == pooling)
    key = "pooling_mode_cls_token" if mode == "cls" else f"pooling_mode_{mode}_tokens"
    config = {"word_embedding_dimension": dim, key: True}
    return {"modules.json": rows, "1_Pooling/config.json": config}


def read_sentence_config(folder: Path) -> dict[str, Any]:
    """Return pooling and normalisation of a folder of sentence-transformers."""
    rows = read_json(folder / "modules.json")
    modules = []
    for row in rows if isinstance(rows, list) else ():
        name, path = (row.get("type"), row.get("path")) if isinstance(row, dict) else (None, None)
        modules.append((str(name).rpartition(".")[2], str(path)))
    names = tuple(name for name, _ in modules)
    if names not in (_MODULES, _MODULES[:2]):
        raise ZooError(
            f"modules.json lists {', '.join(names) or 'no modules'}; supported: Transformer and "
            "Pooling, optionally Normalize"
        )
    transformer_path, path = modules[0][1], modules[1][1]
    if transformer_path not in ("", "."):
        raise ZooError(
            f"modules.json: the path of Transformer is {transformer_path!r}; it should be the "
            "folder itself"
        )
    _check_text_options(folder)
    if Path(path).name != path:
        raise ZooError(f"modules.json: the path {path!r} of Pooling is not a folder beside it")
    modes = _pooling_modes(read_json(folder / path / "config.json"))
    if len(modes) == 1 and modes[0] in _POOLINGS:
        return {"pooling": _POOLINGS[modes[0]], "normalise": len(names) == len(_MODULES)}
    raise ZooError(
        f"{path}/config.json: the pooling mode is {' and '.join(modes) or 'not set'}; supported: "
        f"one of {', '.join(_POOLINGS)}"
    )


def _check_text_options(folder: Path) -> None:
    """Raise ZooError if sentence-transformers would change texts before the tokenizer."""
    for file, key in _TEXT_OPTIONS.items():
        options = read_json(folder / file) if (folder / file).is_file() else None
        value = options.get(key) if isinstance(options, dict) else None
        if value:
            raise ZooError(f"{file}: '{key}' is {value!r}, which is not supported")


def _pooling_modes(config: Any) -> list[str]:
    """Return the pooling modes of a config: a name or, in older files, one key per mode."""
    if not isinstance(config, dict):
        return []
    mode = config.get("pooling_mode") or []
    names = [str(name) for name in (mode if isinstance(mode, list) else [mode])]
    keys = [key for key, on in config.items() if key.startswith("pooling_mode_") and on is True]
    return names + [_POOLING_KEY.sub("", key) for key in keys]
