"""What encoders of text share: a masked-token head, or one vector a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo import ZooError
from zoo.plugin import TensorReader
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import at, config_error, read_json

_POOLINGS = {"mean": "mean", "cls": "first", "max": "max"}
_POOLING_KEY = re.compile("^pooling_mode_|_tokens?$")
_TEXT_OPTIONS = {
    "sentence_bert_config.json": "do_lower_case",
    "config_sentence_transformers.json": "default_prompt_name",
}
_MODULES = ("Transformer", "Pooling", "Normalize")


class MaskedLMArchitecture(Architecture):
    """An encoder with the head of its masked language model, or of sentence-transformers.

    A folder of sentence-transformers has a ``modules.json``; it says how states are pooled.
    """

    base_model_class: ClassVar[str]
    """The class of transformers without a head."""
    activation: ClassVar[str] = "hidden_act"
    ignored_paths = ("model.scale",)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*super().kinds, "sentence-encoder")

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        config = super().extend_config(config, folder, weights)
        if config["untied"]:
            raise ZooError(
                f"'{self.tied_weight_names[0]}' is another table than '{self.table}'; one is used"
            )
        modules = folder / "modules.json"
        return (
            {**config, "sentence": _read_sentence_config(folder)} if modules.is_file() else config
        )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        sentence = config.get("sentence")
        if isinstance(sentence, Mapping):
            made["model"] |= {"type": "sentence-encoder", **sentence}
            del made["model"]["eps"]
            return
        activation = config.get(self.activation, "gelu")
        if activation != "gelu":
            raise config_error(self.activation, activation, "the masked-token head has gelu")

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        if at(spec, "model.pooling") is not None:
            made["architectures"] = [self.base_model_class]

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        pooling, normalise = at(spec, "model.pooling"), at(spec, "model.normalise")
        return {"sentence": {"pooling": pooling, "normalise": normalise}} if pooling else {}

    def files(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What sentence-transformers reads beside the config."""
        pooling = at(spec, "model.pooling")
        if pooling is None:
            return {}
        names = [*_MODULES[:2], *(_MODULES[2:] if at(spec, "model.normalise") else ())]
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
        word = "cls_token" if mode == "cls" else f"{mode}_tokens"
        pooled = {"word_embedding_dimension": at(spec, self.dim), f"pooling_mode_{word}": True}
        return {"modules.json": rows, "1_Pooling/config.json": pooled}

    def _validate_config(self, config: Config) -> None:
        if config.get("architectures") == [self.base_model_class]:
            if "sentence" not in config:
                raise config_error(
                    "architectures",
                    config["architectures"],
                    f"it has no head; the zoo takes {self.heads[0]}, or a folder of "
                    "sentence-transformers, whose modules.json says how states are pooled",
                )
            config = {**config, "architectures": [self.heads[0]]}
        super()._validate_config(config)


def _read_sentence_config(folder: Path) -> dict[str, Any]:
    """How a folder of sentence-transformers makes one vector of many."""
    rows = read_json(folder / "modules.json")
    names = []
    for row in rows if isinstance(rows, list) else ():
        kind, path = (row.get("type"), row.get("path")) if isinstance(row, dict) else (None, None)
        names.append((str(kind).rpartition(".")[2], str(path)))
    kinds = tuple(name for name, _ in names)
    if kinds not in (_MODULES, _MODULES[:2]):
        raise ZooError(
            f"modules.json lists {', '.join(kinds) or 'nothing'}; the zoo takes Transformer and "
            "Pooling, with or without Normalize"
        )
    place, path = names[0][1], names[1][1]
    if place not in ("", "."):
        raise ZooError(f"modules.json finds the Transformer in {place!r}, not in the folder itself")
    _check_text_options(folder)
    if Path(path).name != path:
        raise ZooError(f"modules.json names {path!r}, which is no folder beside it")
    chosen = _pooling_modes(read_json(folder / path / "config.json"))
    if len(chosen) == 1 and chosen[0] in _POOLINGS:
        return {"pooling": _POOLINGS[chosen[0]], "normalise": len(names) == len(_MODULES)}
    raise ZooError(
        f"{path}/config.json: the pooling is {' and '.join(chosen) or 'not said'}; the zoo can "
        f"express one of {', '.join(_POOLINGS)}"
    )


def _check_text_options(folder: Path) -> None:
    """What sentence-transformers does to texts before the tokenizer has them."""
    for file, key in _TEXT_OPTIONS.items():
        said = read_json(folder / file) if (folder / file).is_file() else None
        value = said.get(key) if isinstance(said, dict) else None
        if value:
            raise ZooError(f"{file}: '{key}' is {value!r}; texts are read as they are here")


def _pooling_modes(config: Any) -> list[str]:
    """Which poolings a config of one names, as a word or, in older files, one key for each."""
    if not isinstance(config, dict):
        return []
    mode = config.get("pooling_mode") or []
    named = [str(one) for one in (mode if isinstance(mode, list) else [mode])]
    keys = [key for key, on in config.items() if key.startswith("pooling_mode_") and on is True]
    return named + [_POOLING_KEY.sub("", key) for key in keys]
