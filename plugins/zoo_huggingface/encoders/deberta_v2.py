"""DeBERTa-v2 and v3: BERT's encoder with disentangled relative positions."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue, config_error, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import ENCODER_ONLY, TIED, bert_fields
from zoo_huggingface.encoders.deberta_positions import (
    POSITION_KEYS,
    position_names,
    position_parts,
    read_position,
    write_position,
)
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import masked_lm_template, transformer_template

_ENCODER = transformer_template(
    attention={"scorer": {"type": "scaled-dot"}, "align": {"type": "soft"}},
    norm={"embedding": True},
)
_LEGACY_HEAD = {
    "transform.{w:weight|bias}": "cls.predictions.transform.dense.{w}",
    "norm.{w:weight|bias}": "cls.predictions.transform.LayerNorm.{w}",
    "bias": "cls.predictions.bias",
}
_HEAD = {
    "transform.{w:weight|bias}": "lm_predictions.lm_head.dense.{w}",
    "norm.{w:weight|bias}": "lm_predictions.lm_head.LayerNorm.{w}",
    "bias": "lm_predictions.lm_head.bias",
}
_ACTIVATIONS = ("gelu", "relu", "tanh")


class DebertaV2(EncoderImporter):
    """DeBERTa-v2 and v3, with or without a head, or as a sentence encoder (He et al. 2021)."""

    name = "deberta-v2"
    # Published files of v3 name no class; their heads of pretraining are not those of the classes.
    model_classes = (
        "DebertaV2Model",
        "DebertaV2ForMaskedLM",
        "DebertaV2ForSequenceClassification",
        "DebertaV2ForTokenClassification",
    )
    activation_in_head = True
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": ("cls_dropout", "hidden_dropout_prob"),
        "tagger": ("hidden_dropout_prob",),
    }
    embedding_key = "deberta.embeddings.word_embeddings.weight"
    tied_weight_names = ("cls.predictions.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"cls.predictions.decoder.bias": "cls.predictions.bias"}
    template = masked_lm_template(_ENCODER)
    fields = (
        *bert_fields(without=("type_vocab_size",), layer_norm_eps=1e-7),
        ConfigField("type_vocab_size", "model.source.segments", int, 0, minimum=0),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (
        *ENCODER_ONLY,
        TIED,
        RequiredValue("conv_kernel_size", 0, "the convolution of v2-xlarge is not supported"),
    )
    used_keys = (
        *("id2label", "num_labels", "problem_type", "cls_dropout", "legacy"),
        *("pooler_hidden_act", "pooler_dropout", *POSITION_KEYS),
        *("embedding_size", "pooler_hidden_size", "attention_head_size"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys({"only the convolution uses it": "conv_act conv_groups"}),
    }

    def map(self, config: Config) -> dict[str, Any]:
        content: dict[str, Any] = yaml.safe_load(
            (MAPS / f"{self.name}.yaml").read_text(encoding="utf-8")
        )
        legacy = get_value(config, "legacy", bool, True)
        content["rename"] |= position_names(config)
        content["rename"] |= _LEGACY_HEAD if legacy else _HEAD
        return content

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        heads, dim = model["encoder"]["attention"]["heads"], model["source"]["dim"]
        if heads > dim:
            raise config_error(
                "num_attention_heads", heads, f"it should be at most hidden_size ({dim})"
            )
        widths = {
            "embedding_size": dim,
            "pooler_hidden_size": dim,
            "attention_head_size": dim // heads,
        }
        for key, width in widths.items():
            if get_value(config, key, int, width) != width:
                raise config_error(key, config[key], f"only {width} is supported")
        read_position(model["encoder"], config, dim // heads)
        super().update_spec(spec, config)

    def _set_head(self, spec: dict[str, Any], config: Config, head: str) -> None:
        super()._set_head(spec, config, head)
        if head == "features":
            spec["model"]["pooler"] = False
        elif head == "classifier":
            activation = get_value(config, "pooler_hidden_act", str, "gelu")
            if activation not in _ACTIVATIONS:
                supported = ", ".join(_ACTIVATIONS)
                raise config_error("pooler_hidden_act", activation, f"supported: {supported}")
            dropout = get_value(config, "pooler_dropout", float, 0.0)
            spec["model"]["inner"] = {"activation": activation, "dropout": dropout}

    def max_length(self, spec: Mapping[str, Any]) -> int | None:
        return next((p["length"] for p in position_parts(spec) if "length" in p), None)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        write_position(config, spec)
        inner = spec["model"].get("inner")
        if inner:
            config["pooler_hidden_act"] = inner["activation"]
            config["pooler_dropout"] = inner["dropout"]
