"""Base classes of the towers of two-tower models alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from zoo import ZooError
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import ConfigField, config_error, get_path
from zoo_huggingface.vision.two_towers import TwoTowerImporter

DIM = "model.source.dim"


def own_fields(importer: type[TwoTowerImporter], part: str) -> Sequence[ConfigField]:
    """Return the fields of one config of two towers, for a config of its own."""
    return tuple(
        replace(
            field,
            key=field.key.removeprefix(f"{part}."),
            paths=field.paths.replace("model.target", "model.source"),
        )
        for field in importer.fields
        if field.key.startswith(f"{part}.")
    )


def own_keys(importer: type[TwoTowerImporter], part: str) -> dict[str, str]:
    """Return the ignored keys of one config of two towers."""
    return {
        key.removeprefix(f"{part}."): reason
        for key, reason in importer.ignored_keys.items()
        if key.startswith(f"{part}.")
    }


def own_template(importer: type[TwoTowerImporter], side: str) -> dict[str, Any]:
    """Return the template of one of two towers."""
    return {"model": {"type": "one-tower", "source": importer.template["model"][side]}}


class OneTowerImporter(Architecture):
    """One tower: states and a vector of each input."""

    dim_path = "model.source.embedding.dim"
    padding_path = "model.source.embedding.padding"
    unchecked_spec_paths = ("model.source.embedding.image_size",)

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """Padding is not masked: the pooled state does not depend on it."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        encoder = spec["model"]["source"]["encoder"]
        for each in (encoder, encoder.get("encoder", {})):
            if get_path(each, "attention.heads") == 1:  # transformers projects one head too
                each["attention"]["project"] = "qkv"


class TextTower(OneTowerImporter):
    """Encoder of texts."""

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        extended = super().read_folder(config, folder, ignore)
        return {**extended, "has_tokenizer": (folder / "tokenizer.json").is_file()}


class ImageTower(OneTowerImporter):
    """Encoder of square images; `tokens` is the number of learned vectors before the patches."""

    preprocessor_kind = "image"
    used_keys: ClassVar[tuple[str, ...]] = ("image_size",)
    tokens: ClassVar[int] = 0

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        source = spec["model"]["source"]
        side, patch = (
            config.get("image_size", self._defaults["image_size"]),
            source["embedding"]["size"],
        )
        if type(side) is not int or side < 1 or side % patch:
            raise config_error(
                "image_size", side, f"it should be a multiple of patch_size ({patch})"
            )
        source["embedding"]["image_size"] = side
        source["encoder"]["encoder"]["position"]["length"] = (side // patch) ** 2 + self.tokens

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        path = "model.source.encoder.encoder.position.length"
        patches = self.require(spec, path) - self.tokens
        side = math.isqrt(max(patches, 0))
        if side**2 != patches:
            raise ZooError(
                f"{path} is {patches + self.tokens}; it should be {self.tokens} + n², for a square "
                "image of n × n patches"
            )
        config["image_size"] = side * get_path(spec, "model.source.embedding.size")
