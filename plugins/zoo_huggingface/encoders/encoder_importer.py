"""Base class of text encoders: with a head, without one, or with one vector per sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo import ZooError
from zoo.plugin import TensorReader
from zoo_huggingface.architecture import MAPS, Architecture, Config
from zoo_huggingface.config_fields import get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.sentences import (
    is_sentence_encoder,
    projection_folders,
    read_sentence_config,
    sentence_files,
    sentence_texts,
)
from zoo_huggingface.labels import (
    is_multi_label,
    is_regression,
    read_labels,
    write_labels,
    write_problem_type,
)
from zoo_huggingface.tokenizer_files import read_tokenizer_content

_HEADS = {
    "ForMaskedLM": "masked-lm",
    "ForPreTraining": "masked-lm",
    "Model": "features",
    "ForSequenceClassification": "classifier",
    "ForTokenClassification": "tagger",
}
"""Endings of classes of transformers, and the models of the zoo."""
_CLASSES_OF = {"sentence-encoder": "features", "regressor": "classifier"}
"""Models of the zoo that have the class of another one in transformers."""
_COUNTS = {"classifier": "classes", "regressor": "outputs", "tagger": "labels"}
_POOLERS = ("pooler.dense.weight", "pooler.weight")
_LENGTH = "model.encoder.position.length"
_ACTIVATION = "model.encoder.feed_forward.activation"


class EncoderImporter(Architecture):
    """Encoder with a head: masked tokens, classes of a text or of its tokens, or none.

    A folder of sentence-transformers, which has a ``modules.json``, is a sentence encoder.
    """

    activation_in_head: ClassVar[bool] = False
    """Whether the masked-token head has the activation of the encoder; otherwise it has gelu."""
    inner: ClassVar[Mapping[str, Any]] = {}
    """The layer before the output layer of the sequence classifier."""
    inner_dropout: ClassVar[bool] = False
    """Whether there is dropout before that layer too."""
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": ("classifier_dropout", "hidden_dropout_prob"),
        "tagger": ("classifier_dropout", "hidden_dropout_prob"),
    }
    """Keys of the dropout of a head; the first that is not null is used."""
    map_name: ClassVar[str] = ""
    """The file of the map, if it is not named as the importer."""
    head_rules: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Names of tensors of a head that the map does not have, because they depend on the head."""
    unchecked_spec_paths = ("model.scale",)
    used_keys: ClassVar[tuple[str, ...]] = (
        "id2label",
        "num_labels",
        "problem_type",
        "classifier_dropout",
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "generation uses it": "bos_token_id eos_token_id",
            "transformers removed it: tables are always shared": "tie_weights_",
        }
    )

    @property
    def model_types(self) -> tuple[str, ...]:
        heads = dict.fromkeys(_head(name) for name in self.model_classes)
        return (*heads, *_CLASSES_OF)

    def map(self, config: Config) -> Path | dict[str, Any]:
        path = MAPS / f"{self.map_name or self.name}.yaml"
        rules = self.head_rules.get(self._head_of(config))
        if rules is None:
            return path
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["rename"] |= rules
        return content

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path | Mapping[str, Any]]:
        found = super().tokenizers(folder, config)
        if found:
            lowercase = bool(config.get("lowercase"))
            found = dict.fromkeys(found, read_tokenizer_content(folder, lowercase=lowercase))
        is_text = self._head_of(config) == "masked-lm" or "sentence" in config
        return found if is_text else {key: found[key] for key in found if key == "source"}

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        config = super().read_folder(config, folder, ignore)
        added: dict[str, Any] = {"has_tokenizer": (folder / "tokenizer.json").is_file()}
        if (folder / "modules.json").is_file():
            added |= read_sentence_config(folder)
        return {**config, **added}

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        config = super().extend_config(config, folder, weights)
        if config["untied"]:
            raise ZooError(
                f"'{self.tied_weight_names[0]}' differs from '{self.embedding_key}'; "
                "they should be shared"
            )
        has_pooler = any(name.endswith(_POOLERS) for name in weights.metas)
        return {**config, "pooler": True} if has_pooler else config

    def check_required(self, config: Config) -> None:
        if self._head_of(config) != "masked-lm":  # the others have no table to share
            config = {key: config[key] for key in config if key != "tie_word_embeddings"}
        super().check_required(config)

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        # Only the tokenizer's padding is masked in transformers; that of the config has no effect.
        padding = config.get("tokenizer_padding")
        if padding is not None:
            spec["model"]["source"]["padding"] = padding

    def _check_modules(self, folder: Path) -> None:
        """Accept folders of sentence-transformers."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        head = self._head_of(config)
        sentence = config.get("sentence")
        if isinstance(sentence, Mapping):
            spec["model"] |= {"type": "sentence-encoder", **sentence}
            del spec["model"]["eps"]
            texts = sentence_texts(config, self.max_length(spec))
            spec |= {"preprocessing": texts} if texts else {}
        elif head == "masked-lm":
            if self.activation_in_head:
                spec["model"]["activation"] = get_path(spec, _ACTIVATION)
        else:
            del spec["model"]["eps"]
            self._set_head(spec, config, head)

    def _set_head(self, spec: dict[str, Any], config: Config, head: str) -> None:
        model: dict[str, Any] = spec["model"]
        model["type"] = head
        texts = {"type": "text", "max_length": self.max_length(spec)}
        spec["preprocessing"] = {"source": texts} if config.get("has_tokenizer") else {}
        if head == "features":
            del spec["objective"]
            model["pooler"] = bool(config.get("pooler"))
            return
        names = read_labels(config)
        model["dropout"] = self._head_dropout(config, head)
        if head == "tagger":
            model["labels"] = len(names)
            spec["preprocessing"]["target"] = {"type": "labels", "classes": names}
            return
        inner = {"dropout": model["dropout"]} if self.inner_dropout else {}
        model["inner"] = {**self.inner, **inner}
        if is_regression(config):
            model |= {"type": "regressor", "outputs": len(names)}
            spec["objective"] = "mean-squared-error"
            return
        multi_label = is_multi_label(config)
        model |= {"classes": len(names), "multi_label": multi_label}
        target = "labels" if multi_label else "label"
        spec["preprocessing"]["target"] = {"type": target, "classes": names}
        if multi_label:
            spec["objective"] = "binary-cross-entropy"

    def max_length(self, spec: Mapping[str, Any]) -> int | None:
        """Return the maximum number of tokens of a text, or None if there is none."""
        length: int | None = get_path(spec, _LENGTH)
        return length

    def _head_dropout(self, config: Config, head: str) -> float:
        values = (
            get_value(config, key, float, self._defaults.get(key))
            for key in self.dropout_keys[head]
        )
        dropout: float = next(value for value in values if value is not None)
        return dropout

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        model = spec["model"]
        head = str(model["type"]).rpartition(":")[2]
        wanted = _CLASSES_OF.get(head, head)
        config["architectures"] = [
            next(name for name in self.model_classes if _head(name) == wanted)
        ]
        if wanted in self.dropout_keys:
            key = self.dropout_keys[wanted][0]
            if all(field.key != key for field in self.fields):  # not that of the encoder
                config[key] = model["dropout"]
            write_labels(config, spec, model[_COUNTS[head]])
        if wanted == "classifier":
            write_problem_type(
                config,
                multi_label=model.get("multi_label", False),
                regression=head == "regressor",
            )

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        model = spec["model"]
        if not is_sentence_encoder(spec):
            return {"pooler": model.get("pooler", False)}
        projections = [dict(projection) for projection in model["projections"]]
        keys = ("pooling", "normalise", "prompts", "default_prompt", "include_prompt")
        sentence = {key: model.get(key) for key in (*keys, "truncate_dim") if key in model}
        return {"sentence": {**sentence, "projections": projections}}

    def weight_folders(self, spec: Mapping[str, Any]) -> list[str]:
        return projection_folders(spec)

    def files(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the files of sentence-transformers."""
        if not is_sentence_encoder(spec):
            return {}
        dim = get_path(spec, "model.encoder.dim") or get_path(spec, self.dim_path)
        return sentence_files(spec, dim)

    def _head_of(self, config: Config) -> str:
        """Return the model of the zoo for a config."""
        named = config.get("architectures") or [self.model_classes[0]]
        known = [name for name in named if name in self.model_classes]
        return _head(known[0] if known else self.model_classes[0])


def _head(model_class: str) -> str:
    return next(head for ending, head in _HEADS.items() if model_class.endswith(ending))
