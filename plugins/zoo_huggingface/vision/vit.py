"""ViT, the Vision Transformer."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from zoo import ZooError
from zoo.plugin import TensorReader
from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import (
    ConfigField,
    config_error,
    get_mapping,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.labels import read_labels, write_labels
from zoo_huggingface.optional_head import OptionalHead, is_headless
from zoo_huggingface.preprocessor_files import warn_of_size
from zoo_huggingface.templates import activation_field, transformer_template

_LENGTH = "model.encoder.position.length"


class ViT(OptionalHead):
    """ViT with a classifier or without a head, for square images (Dosovitskiy et al. 2021)."""

    name = "vit"
    preprocessor_kind = "image"
    # Any size is allowed without it.
    unchecked_spec_paths: ClassVar[tuple[str, ...]] = ("model.source.image_size",)
    model_classes: ClassVar[tuple[str, ...]] = ("ViTForImageClassification", "ViTModel")
    headless_classes: ClassVar[tuple[str, ...]] = ("ViTModel",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "classifier",
            "source": {"type": "patches"},
            "encoder": transformer_template(norm={"place": "pre"}, position={"type": "learned"}),
        },
        "objective": "cross-entropy",
        "metrics": ["accuracy"],
    }
    fields: ClassVar[Sequence[ConfigField]] = (
        ConfigField("hidden_size", "model.source.dim"),
        ConfigField("patch_size", "model.source.size", int, 16),
        ConfigField("num_channels", "model.source.channels", int, 3),
        ConfigField("num_hidden_layers", "model.encoder.layers"),
        ConfigField("num_attention_heads", "model.encoder.attention.heads"),
        ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
        activation_field("hidden_act", "encoder", "gelu"),
        ConfigField("layer_norm_eps", "model.encoder.norm.eps", float, 1e-12),
        ConfigField(
            "qkv_bias",
            "model.encoder.attention.bias",
            bool,
            True,
            value_map={True: True, False: "out"},
        ),
        ConfigField("hidden_dropout_prob", "model.encoder.dropout", float, 0.0),
        ConfigField(
            "attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.0
        ),
    )
    used_keys: ClassVar[tuple[str, ...]] = ("id2label", "image_size", "num_labels")
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects initialisation only": "initializer_range",
            "heads of other tasks use it": "encoder_stride",
            "another pooler is not imported": "pooler_act pooler_output_size",
            "the model has no tables to share": "tie_word_embeddings",
        }
    )
    tokens: ClassVar[int] = 1
    """Number of learned vectors before the patches."""

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        extended = super().read_folder(config, folder, ignore)
        warn_of_size(get_mapping(extended, "preprocessor"), config.get("image_size", 224))
        return extended

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        extended = super().extend_config(config, folder, weights)
        if any(name.endswith("pooler.dense.weight") for name in weights.metas):
            return {**extended, "pooler": True}
        return extended

    def spec(self, config: Config) -> dict[str, Any]:
        spec = super().spec(config)
        if is_headless(spec):
            spec["model"]["pooler"] = bool(config.get("pooler")) and _is_square(config)
        return spec

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"pooler": is_headless(spec) and spec["model"].get("pooler", False)}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        side, patch = get_value(config, "image_size", int, 224), model["source"]["size"]
        if side % patch:
            raise config_error(
                "image_size", side, f"it should be a multiple of patch_size ({patch})"
            )
        model["source"]["image_size"] = side
        model["encoder"]["position"]["length"] = (side // patch) ** 2 + self.tokens
        if self.has_head(config):
            self.set_head(spec, config)

    def set_head(self, spec: dict[str, Any], config: Config) -> None:
        """Set the number of classes and their names."""
        names = read_labels(config)
        spec["model"]["classes"] = len(names)
        spec["preprocessing"] = {"target": {"type": "label", "classes": names}}

    def image_side(self, spec: Mapping[str, Any]) -> int:
        """Return the side of the images in pixels."""
        length, patch = self.require(spec, _LENGTH), get_path(spec, "model.source.size")
        side = math.isqrt(max(length - self.tokens, 0))
        if side**2 != length - self.tokens:
            raise ZooError(
                f"{_LENGTH} is {length}; it should be {self.tokens} + n², for a square image of "
                "n × n patches"
            )
        return int(side * patch)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["image_size"] = self.image_side(spec)
        classes = get_path(spec, "model.classes")
        if classes is not None:
            write_labels(config, spec, classes)


def _is_square(config: Config) -> bool:
    """Return whether the pooler is that of `features`: of the width of the states, with tanh."""
    widths = (config.get("pooler_output_size"), config.get("hidden_size"))
    return widths[0] in (None, widths[1]) and config.get("pooler_act", "tanh") == "tanh"
