"""ViT."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from zoo import ZooError
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ACTIVATIONS,
    ConfigField,
    RequiredValue,
    at,
    config_error,
    get_value,
    table,
)

_LENGTH = "model.encoder.position.length"


class ViT(Architecture):
    """ViT with its classifier, for square images (Dosovitskiy 2021)."""

    name = "vit"
    heads = ("ViTForImageClassification",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "classifier",
            "source": {"type": "patches"},
            "encoder": {
                "type": "transformer",
                "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
                "feed_forward": {},
                "norm": {"place": "pre"},
                "position": {"type": "learned"},
            },
        },
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("hidden_size", "model.source.dim"),
        ConfigField("patch_size", "model.source.size", int, 16),
        ConfigField("num_channels", "model.source.channels", int, 3),
        ConfigField("num_hidden_layers", "model.encoder.layers"),
        ConfigField("num_attention_heads", "model.encoder.attention.heads"),
        ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
        ConfigField(
            "hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        ConfigField("layer_norm_eps", "model.encoder.norm.eps", float, 1e-12),
        ConfigField("hidden_dropout_prob", "model.encoder.dropout", float, 0.0),
        ConfigField(
            "attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.0
        ),
    )
    only = (
        RequiredValue("qkv_bias", True, "attention has a bias throughout, or none in its output"),
    )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        model = made["model"]
        side, patch = get_value(config, "image_size", int, 224), model["source"]["size"]
        if side % patch:
            raise config_error(
                "image_size", side, f"it should be a multiple of {patch}, a patch's side"
            )
        model["encoder"]["position"]["length"] = (side // patch) ** 2 + 1
        names = table(config, "id2label")
        model["classes"] = len(names) or get_value(config, "num_labels", int, 2)

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        length, patch = self.needed(spec, _LENGTH), at(spec, "model.source.size")
        side = math.isqrt(length - 1)
        if side**2 != length - 1:
            raise ZooError(
                f"{_LENGTH} is {length}; a square image has one position more "
                "than a square number of patches"
            )
        made["image_size"] = side * patch
        classes = at(spec, "model.classes")
        if len(made.get("id2label") or ()) != classes:
            made["id2label"] = {str(i): f"LABEL_{i}" for i in range(classes)}
            made["label2id"] = {name: int(i) for i, name in made["id2label"].items()}
