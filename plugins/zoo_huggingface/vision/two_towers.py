"""Base class of models with a config for texts and one for images."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from zoo import ZooError
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import ConfigField, config_error, get_mapping, get_path
from zoo_huggingface.config_keys import COMMON_IGNORED_KEYS, OLDER_DEFAULTS, ignored_keys
from zoo_huggingface.generation import GENERATION_KEYS
from zoo_huggingface.templates import ACTIVATIONS

TEXT, IMAGE = "text_config", "vision_config"
_PARTS = {TEXT: "target", IMAGE: "source"}
"""Keys of the config, and the towers of the model."""


class TextImageImporter(Architecture):
    """Model with two configs, whose keys are ``text_config.KEY`` and ``vision_config.KEY``."""

    preprocessor_kind = "image"
    used_keys: ClassVar[tuple[str, ...]] = (f"{IMAGE}.image_size", *_PARTS)

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        older = {f"{part}.{key}": value for part in _PARTS for key, value in OLDER_DEFAULTS.items()}
        return {**older, **flatten(super()._defaults)}

    @property
    def known_keys(self) -> set[str]:
        common = {*COMMON_IGNORED_KEYS, *GENERATION_KEYS, "architectures"}
        return super().known_keys | {f"{part}.{key}" for part in _PARTS for key in common}

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(flatten(config))

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        return nest(super().config(spec, flatten(original)))

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path]:
        file = folder / "tokenizer.json"
        return {"target": file} if file.is_file() else {}

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """The padding of the tokenizer is not used: sources are not padded."""

    def read_side(self, config: Config, patch: int) -> int:
        """Return the side of the images in pixels."""
        key = f"{IMAGE}.image_size"
        side = config.get(key, self._defaults[key])
        if type(side) is not int or side < 1 or side % patch:
            raise config_error(key, side, f"it should be a multiple of patch_size ({patch})")
        return side

    def write_side(self, spec: Mapping[str, Any], path: str, patch: int, tokens: int) -> int:
        """Return the side of the images, given the path of the number of positions."""
        patches = self.require(spec, path) - tokens
        side = round(max(patches, 0) ** 0.5)
        if side**2 != patches:
            raise ZooError(
                f"{path} is {patches + tokens}; it should be {tokens} + n², for a square image of "
                "n × n patches"
            )
        return int(side * patch)


class TwoTowerImporter(TextImageImporter):
    """Two towers: images are sources, texts are targets."""

    image_tokens: ClassVar[int] = 0
    """Number of learned vectors before the patches."""
    pooled: ClassVar[bool] = False
    """Whether images are pooled by attention, around the encoder."""
    dim_path = "model.target.embedding.dim"
    padding_path = "model.target.embedding.padding"
    unchecked_spec_paths = ("model.scale", "model.bias", "model.source.embedding.image_size")

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        extended = super().read_folder(config, folder, ignore)
        return {**extended, "has_tokenizer": (folder / "tokenizer.json").is_file()}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        source = spec["model"]["source"]
        patch = source["embedding"]["size"]
        side = self.read_side(config, patch)
        source["embedding"]["image_size"] = side
        encoders = [source["encoder"], spec["model"]["target"]["encoder"]]
        if self.pooled:
            encoders.append(source["encoder"]["encoder"])
        images = encoders[2] if self.pooled else encoders[0]
        images["position"]["length"] = (side // patch) ** 2 + self.image_tokens
        for encoder in encoders:
            if encoder["attention"]["heads"] == 1:  # transformers projects one head too
                encoder["attention"]["project"] = "qkv"

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        path = f"model.source.encoder{'.encoder' * self.pooled}.position.length"
        patch = get_path(spec, "model.source.embedding.size")
        config[f"{IMAGE}.image_size"] = self.write_side(spec, path, patch, self.image_tokens)


def tower_fields(
    part: str, *, activation: str, eps: float, size: int, heads: int, pooled: bool = False
) -> tuple[ConfigField, ...]:
    """Return the fields of the Transformer of a tower, with their defaults.

    Args:
        part: the config of the tower.
        activation: the feed-forward activation.
        eps: that of the norms.
        size: width of the states.
        heads: number of heads.
        pooled: whether attention pooling with the same parts is around the encoder.
    """
    tower = f"model.{_PARTS[part]}"
    outer = f"{tower}.encoder"
    encoder = f"{outer}.encoder" if pooled else outer

    def paths(name: str) -> str:
        return f"{encoder}.{name} {outer}.{name}" if pooled else f"{encoder}.{name}"

    return (
        ConfigField(f"{part}.hidden_size", f"{tower}.embedding.dim", int, size),
        ConfigField(f"{part}.intermediate_size", paths("feed_forward.hidden"), int, 4 * size),
        ConfigField(f"{part}.num_hidden_layers", f"{encoder}.layers", int, 12),
        ConfigField(f"{part}.num_attention_heads", paths("attention.heads"), int, heads),
        ConfigField(
            f"{part}.hidden_act",
            paths("feed_forward.activation"),
            str,
            activation,
            value_map=ACTIVATIONS,
        ),
        ConfigField(f"{part}.layer_norm_eps", paths("norm.eps"), float, eps),
        ConfigField(f"{part}.attention_dropout", f"{encoder}.attention.align.dropout", float, 0.0),
    )


def part_keys(groups: Mapping[str, str]) -> dict[str, str]:
    """Return the reason of each key of both configs, as `ignored_keys`."""
    return {
        f"{part}.{key}": reason for part in _PARTS for key, reason in ignored_keys(groups).items()
    }


def flatten(config: Config) -> dict[str, Any]:
    """Return a config with the keys of its parts as ``PART.KEY``."""
    flat = {key: value for key, value in config.items() if key not in _PARTS}
    for part in _PARTS:
        flat |= {f"{part}.{key}": value for key, value in get_mapping(config, part).items()}
    return flat


def nest(config: Config) -> dict[str, Any]:
    """Return a config with mappings for its parts."""
    nested: dict[str, Any] = {part: {} for part in _PARTS}
    for key, value in config.items():
        part, _, inner = key.partition(".")
        if part in _PARTS and inner:
            nested[part][inner] = value
        else:
            nested[key] = value
    return nested
