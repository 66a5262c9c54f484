"""Base class of language models that are also imported without their output layer, as encoders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo import ZooError, load_spec
from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import get_path, get_value
from zoo_huggingface.encoders.sentences import (
    is_sentence_encoder,
    projection_folders,
    read_sentence_config,
    sentence_files,
    sentence_texts,
)
from zoo_huggingface.tokenizer_files import adds_padding, read_tokenizer_content

_ENCODERS = ("features", "sentence-encoder")
_OUTPUT_KEYS = ("bos_token_id", "eos_token_id", "tie_word_embeddings", "final_logit_softcapping")
"""Keys of a config that concern the output layer or generation only."""


class CausalEncoderArchitecture(CausalLMArchitecture):
    """Decoder-only language model; its class without an output layer gives features.

    A folder of sentence-transformers, which has a ``modules.json``, is a sentence encoder.
    """

    map_name: ClassVar[str]
    """The file of the map."""

    @property
    def base_class(self) -> str | None:
        """The class of transformers without an output layer, None if it is not supported."""
        return next((name for name in self.model_classes if name.endswith("Model")), None)

    @property
    def model_types(self) -> tuple[str, ...]:
        return (*super().model_types, *(_ENCODERS if self.base_class else ()))

    def is_encoder(self, config: Config) -> bool:
        """Return whether a config is that of a model without an output layer."""
        named = config.get("architectures")
        is_named = isinstance(named, list) and self.base_class in named
        return self.base_class is not None and ("sentence" in config or is_named)

    def is_causal(self, config: Config) -> bool:
        """Return whether the positions of an encoder attend to earlier ones only."""
        return True

    def to_causal(self, config: Config) -> Config:
        """Return the config of an encoder as that of the causal one with the same layers."""
        return config

    def to_bidirectional(self, config: Config) -> dict[str, Any]:
        """Return the inverse of `to_causal` for an encoder that is not causal."""
        raise ZooError(f"model.encoder.causal is not true, which {self.name} needs")

    def map(self, config: Config) -> Path | dict[str, Any]:
        path = MAPS / f"{self.map_name}.yaml"
        return _encoder_map(path) if self.is_encoder(config) else path

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        extended = super().read_folder(config, folder, ignore)
        if not self._is_encoder_folder(config, folder):
            return extended
        added: dict[str, Any] = {"has_tokenizer": (folder / "tokenizer.json").is_file()}
        added["padding_ends"] = added["has_tokenizer"] and adds_padding(folder)
        if (folder / "modules.json").is_file():
            added |= read_sentence_config(folder)
        return {**extended, **added}

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path | Mapping[str, Any]]:
        found = super().tokenizers(folder, config)
        if not found or not self.is_encoder(config):
            return found
        content = read_tokenizer_content(folder, lowercase=bool(config.get("lowercase")))
        return dict.fromkeys(found if "sentence" in config else ("source",), content)

    def chat_template(self, folder: Path, config: Config) -> Mapping[str, Any] | None:
        return None if self.is_encoder(config) else super().chat_template(folder, config)

    def spec(self, config: Config) -> dict[str, Any]:
        if not self.is_encoder(config):
            return super().spec(config)
        tokens = {"eos_token_id": 0, "tokenizer_padding": None}  # a language model needs them
        spec = super().spec({**self.to_causal(config), **tokens})
        embedding, decoder = (spec["model"][part] for part in ("embedding", "decoder"))
        pad = config.get("tokenizer_padding", get_value(config, "pad_token_id", int, None))
        source = {**embedding, "padding": None if pad == -1 else pad}
        source |= {"padding_ends": True} if config.get("padding_ends") else {}
        encoder = {key: value for key, value in decoder.items() if key != "output"}
        encoder["causal"] = self.is_causal(config)
        model = {"type": "features", "source": source, "encoder": encoder}
        texts = {"source": {"type": "text"}} if config.get("has_tokenizer") else {}
        sentence = config.get("sentence")
        if isinstance(sentence, Mapping):
            model |= {"type": "sentence-encoder", **sentence}
            texts = sentence_texts(config, None)
        return {"zoo": 1, "name": self.name, "model": model, "preprocessing": texts}

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        if str(get_path(spec, "model.type")).rpartition(":")[2] not in _ENCODERS:
            return super().config(spec, original)
        if self.base_class is None:
            raise ZooError(f"an export to {self.name} needs a language-model")
        model = self._as_language_model(spec, original)
        config = super().config(model, self.to_causal(original))
        if not get_path(spec, "model.encoder.causal"):
            config = self.to_bidirectional(config)
        config["pad_token_id"] = get_path(spec, "model.source.padding")
        config["architectures"] = [self.base_class]
        for key in _OUTPUT_KEYS:
            config.pop(key, None)
        return config | {key: original[key] for key in _OUTPUT_KEYS if key in original}

    def weight_folders(self, spec: Mapping[str, Any]) -> list[str]:
        return projection_folders(spec)

    def files(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        if not is_sentence_encoder(spec):
            return {}
        return sentence_files(spec, get_path(spec, "model.source.dim"))

    def _as_language_model(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        """Return the resolved spec of the language model with the layers of an encoder."""
        source = {**get_path(spec, "model.source"), "padding": None, "padding_ends": False}
        source["train_padding"] = False
        decoder = dict(get_path(spec, "model.encoder"))
        del decoder["causal"]
        if decoder.pop("share_layers"):
            raise ZooError(f"model.encoder.share_layers is true, but not in {self.name}")
        if decoder.pop("dim") not in (None, source["dim"]):
            raise ZooError(f"model.encoder.dim differs from that of the source in {self.name}")
        decoder["output"] = {"tied": True}
        model: dict[str, Any]
        model = {"type": "language-model", "embedding": source, "decoder": decoder}
        model |= {"bos": original.get("bos_token_id") if self.adds_bos else None, "eos": 0}
        given = {"zoo": 1, "name": self.name, "model": model}
        resolved: dict[str, Any] = load_spec(given, importer=self).resolve()
        return resolved

    def _check_modules(self, folder: Path) -> None:
        if self.base_class is None:
            super()._check_modules(folder)

    def _is_encoder_folder(self, config: Config, folder: Path) -> bool:
        return self.is_encoder(config) or (folder / "modules.json").is_file()

    def _read_generation(
        self, folder: Path, config: Config, ignore: Collection[str]
    ) -> dict[str, Any]:
        if self._is_encoder_folder(config, folder):
            return {}
        return super()._read_generation(folder, config, ignore)


def _encoder_map(path: Path) -> dict[str, Any]:
    """Return the map of a language model for its layers in an encoder."""
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    renamed = {
        ours.replace("embedding.", "source.", 1).replace("decoder.", "encoder.", 1): theirs
        for ours, theirs in content["rename"].items()
        if not ours.startswith("decoder.output.")
    }
    renamed["projections.{n}.map.{w:weight|bias}"] = "{n+2}_Dense/linear.{w}"
    return {**content, "rename": renamed, "prefix": "model."}
