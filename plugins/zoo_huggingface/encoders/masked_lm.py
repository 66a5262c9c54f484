"""Base class of text encoders: a masked-token head, or one vector per sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo import ZooError
from zoo.plugin import TensorReader
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import config_error, get_path, read_json
from zoo_huggingface.config_keys import ignored_keys

_POOLINGS = {"mean": "mean", "cls": "first", "max": "max"}
_POOLING_KEY = re.compile("^pooling_mode_|_tokens?$")
_TEXT_OPTIONS = {
    "sentence_bert_config.json": "do_lower_case",
    "config_sentence_transformers.json": "default_prompt_name",
}
_MODULES = ("Transformer", "Pooling", "Normalize")


class MaskedLMArchitecture(Architecture):
    """Encoder with a masked-token head, or with the pooling of sentence-transformers.

    A folder of sentence-transformers has a ``modules.json`` that lists its pooling.
    """

    base_model_class: ClassVar[str]
    """The class in transformers without a head."""
    activation: ClassVar[str] = "hidden_act"
    unchecked_spec_paths = ("model.scale",)
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "generation uses it": "bos_token_id eos_token_id",
            "transformers removed it: tables are always shared": "tie_weights_",
        }
    )

    @property
    def model_types(self) -> tuple[str, ...]:
        return (*super().model_types, "sentence-encoder")

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        config = super().extend_config(config, folder, weights)
        if config["untied"]:
            raise ZooError(
                f"'{self.tied_weight_names[0]}' differs from '{self.embedding_key}'; "
                "they should be shared"
            )
        if not (folder / "modules.json").is_file():
            return config
        return {**config, "sentence": _read_sentence_config(folder)}

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        # Only the tokenizer's padding is masked in transformers; that of the config has no effect.
        padding = config.get("tokenizer_padding")
        if padding is not None:
            spec["model"]["source"]["padding"] = padding

    def _check_modules(self, folder: Path) -> None:
        """Accept folders of sentence-transformers."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        sentence = config.get("sentence")
        if isinstance(sentence, Mapping):
            spec["model"] |= {"type": "sentence-encoder", **sentence}
            del spec["model"]["eps"]
            return
        activation = config.get(self.activation, "gelu")
        if activation != "gelu":
            raise config_error(
                self.activation, activation, "only gelu is supported in the masked-token head"
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        if get_path(spec, "model.pooling") is not None:
            config["architectures"] = [self.base_model_class]

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        pooling, normalise = get_path(spec, "model.pooling"), get_path(spec, "model.normalise")
        return {"sentence": {"pooling": pooling, "normalise": normalise}} if pooling else {}

    def files(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the files of sentence-transformers."""
        pooling = get_path(spec, "model.pooling")
        if pooling is None:
            return {}
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
        (mode,) = (theirs for theirs, ours in _POOLINGS.items() if ours == pooling)
        key = "pooling_mode_cls_token" if mode == "cls" else f"pooling_mode_{mode}_tokens"
        config = {"word_embedding_dimension": get_path(spec, self.dim_path), key: True}
        return {"modules.json": rows, "1_Pooling/config.json": config}

    def _validate_config(self, config: Config) -> None:
        if config.get("architectures") == [self.base_model_class]:
            if "sentence" not in config:
                raise config_error(
                    "architectures",
                    config["architectures"],
                    f"it has no head; import {self.model_classes[0]}, or a folder of "
                    "sentence-transformers with a modules.json",
                )
            config = {**config, "architectures": [self.model_classes[0]]}
        super()._validate_config(config)


def _read_sentence_config(folder: Path) -> dict[str, Any]:
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
