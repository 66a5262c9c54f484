"""ViT."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from zoo import ZooError
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.settings import ACTIVATIONS, Only, Setting, at, refused, table, valued

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
        Setting("hidden_size", "model.source.dim"),
        Setting("patch_size", "model.source.size", int, 16),
        Setting("num_channels", "model.source.channels", int, 3),
        Setting("num_hidden_layers", "model.encoder.layers"),
        Setting("num_attention_heads", "model.encoder.attention.heads"),
        Setting("intermediate_size", "model.encoder.feed_forward.hidden"),
        Setting(
            "hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        Setting("layer_norm_eps", "model.encoder.norm.eps", float, 1e-12),
        Setting("hidden_dropout_prob", "model.encoder.dropout", float, 0.0),
        Setting(
            "attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.0
        ),
    )
    only = (Only("qkv_bias", True, "attention has a bias throughout, or none in its output"),)

    def adapt(self, made: dict[str, Any], config: Config) -> None:
        model = made["model"]
        side, patch = valued(config, "image_size", int, 224), model["source"]["size"]
        if side % patch:
            raise refused("image_size", side, f"it should be a multiple of {patch}, a patch's side")
        model["encoder"]["position"]["length"] = (side // patch) ** 2 + 1
        names = table(config, "id2label")
        model["classes"] = len(names) or valued(config, "num_labels", int, 2)

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
