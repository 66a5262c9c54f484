"""Heads of speech encoders: labels of frames for CTC, one class of the audio, or none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Architecture, Config
from zoo_huggingface.config_fields import config_error, get_value
from zoo_huggingface.labels import read_labels, write_labels
from zoo_huggingface.speech.ctc_tokenizer import read_ctc_tokenizer

_HEADS = {
    "ForCTC": "ctc-recogniser",
    "ForSequenceClassification": "classifier",
    "ForPreTraining": "features",
    "Model": "features",
}
"""Endings of classes of transformers, and the models of the zoo."""
_OUTPUTS = {"ctc-recogniser": "lm_head", "classifier": "classifier"}
"""Names of the output layers in files."""


class SpeechEncoderImporter(Architecture):
    """Speech encoder with a head, or without one."""

    head_keys: ClassVar[tuple[str, ...]] = (
        *("vocab_size", "pad_token_id", "classifier_proj_size", "use_weighted_layer_sum"),
        *("id2label", "num_labels"),
    )
    """Keys of the config that the heads use."""
    padding_path = "model.blank"
    own_names: ClassVar[Mapping[str, str]] = {}
    """Names of tensors that wav2vec 2.0 does not have, without the prefix."""

    @property
    def model_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_head(name) for name in self.model_classes))

    def map(self, config: Config) -> dict[str, Any]:
        text = (MAPS / "wav2vec2.yaml").read_text(encoding="utf-8")
        content: dict[str, Any] = yaml.safe_load(text.replace("wav2vec2.", f"{self.name}."))
        names = {ours: f"{self.name}.{theirs}" for ours, theirs in self.own_names.items()}
        output = _OUTPUTS.get(self._head_of(config))
        if output is not None:
            names["out.{w:weight|bias}"] = f"{output}.{{w}}"
        content["rename"] |= names
        return content

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        found = bool(self.tokenizers(folder, config))
        return {**super().read_folder(config, folder, ignore), "has_tokenizer": found}

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path | Mapping[str, Any]]:
        """Return the tokenizer of the targets: ``tokenizer.json``, or made of ``vocab.json``."""
        if self._head_of(config) != "ctc-recogniser":
            return {}
        file = folder / "tokenizer.json"
        found = file if file.is_file() else read_ctc_tokenizer(folder)
        return {"target": found} if found else {}

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """The padding is the blank of CTC, which the head sets."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        head = self._head_of(config)
        model: dict[str, Any] = spec["model"]
        model["type"] = head
        if head == "ctc-recogniser":
            model["vocab"] = get_value(config, "vocab_size", int)
            model["blank"] = get_value(config, "pad_token_id", int, self._defaults["pad_token_id"])
            spec |= {"sampler": "ctc-greedy", "objective": {"type": "ctc", "blank": model["blank"]}}
            spec["metrics"] = ["wer", "cer"]
            if config.get("has_tokenizer"):
                spec["preprocessing"] = {"target": {"type": "text"}}
            super().set_padding(spec, config)
        elif head == "classifier":
            if get_value(config, "use_weighted_layer_sum", bool, False):
                raise config_error(
                    "use_weighted_layer_sum", True, "a sum over the layers is not supported"
                )
            names = read_labels(config)
            width = get_value(config, "classifier_proj_size", int, 256)
            model |= {"classes": len(names), "pooling": "mean"}
            model["inner"] = {"dim": width, "activation": "none"}
            spec["objective"] = "cross-entropy"
            spec["preprocessing"] = {"target": {"type": "label", "classes": names}}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        model = spec["model"]
        head = str(model["type"]).rpartition(":")[2]
        config["architectures"] = [
            next(
                name
                for name in self.model_classes
                if _head(name) == head and not name.endswith("ForPreTraining")
            )
        ]
        if head == "ctc-recogniser":
            config |= {"vocab_size": model["vocab"], "pad_token_id": model["blank"]}
        elif head == "classifier":
            config["classifier_proj_size"] = (model["inner"] or {}).get("dim") or 256
            config["use_weighted_layer_sum"] = False
            write_labels(config, spec, model["classes"])

    def _head_of(self, config: Config) -> str:
        """Return the model of the zoo for a config."""
        named = config.get("architectures") or [self.model_classes[0]]
        known = [name for name in named if name in self.model_classes]
        return _head(known[0] if known else self.model_classes[0])


def _head(model_class: str) -> str:
    return next(head for ending, head in _HEADS.items() if model_class.endswith(ending))
