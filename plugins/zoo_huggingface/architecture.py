"""Base class of the importers: config fields in both directions, a map, a round-trip check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from zoo import ZooError, load_spec
from zoo.plugin import Importer, TensorReader
from zoo_huggingface.canonical import canonical, differences
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_path,
    read_json,
    set_path,
)
from zoo_huggingface.small_configs import small_config

MAPS = Path(__file__).parent / "maps"
_ADDED_KEYS = ("untied", "sentence")
"""Keys that `extend_config` adds to a config."""
_DROPPED_KEYS = (
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "dtype",
    "torch_dtype",
    *_ADDED_KEYS,
)
"""Keys of the imported config that an export does not write."""

_GENERATION_CONFIG = "generation_config.json"

Config = Mapping[str, Any]


class Architecture(Importer):
    """One model type of transformers: a spec template and the config fields that fill it.

    Fields are read in both directions. Subclasses override `update_spec` (config to spec) and
    `update_config` (spec to config) for everything else.
    """

    model_classes: ClassVar[tuple[str, ...]]
    """The supported classes of transformers; an export names the first."""
    template: ClassVar[Mapping[str, Any]]
    fields: ClassVar[Sequence[ConfigField]]
    required_values: ClassVar[Sequence[RequiredValue]] = ()
    embedding_key: ClassVar[str] = ""
    """The name of the embedding table in the weights."""
    tied_weight_names: ClassVar[tuple[str, ...]] = ()
    """Names of possible copies of the embedding table; only the first, the output, may differ."""
    dim_path: ClassVar[str] = "model.source.dim"
    unchecked_spec_paths: ClassVar[tuple[str, ...]] = ()
    """Paths of a spec that a config does not contain, so the round-trip check ignores them."""

    @property
    def test_config(self) -> Config | None:
        return small_config(self.name, self.model_classes[0])

    def matches(self, config: Config) -> bool:
        return config.get("model_type") == self.name

    def map(self, config: Config) -> Path | dict[str, Any]:
        return MAPS / f"{self.name}.yaml"

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        """Return the config with the end tokens and whether the output has its own table."""
        untied = not self.is_tied(config)
        for name in self.tied_weight_names:
            if name not in weights.metas:
                continue
            if self.embedding_key not in weights.metas:
                raise ZooError(f"the file has '{name}', but not the table '{self.embedding_key}'")
            if not torch.equal(weights.read(name), weights.read(self.embedding_key)):
                if name != self.tied_weight_names[0]:
                    raise ZooError(
                        f"'{name}' differs from '{self.embedding_key}'; they should be shared"
                    )
                untied = True
        original = {key: value for key, value in config.items() if key not in _ADDED_KEYS}
        return {**original, **_read_eos_token_id(folder / _GENERATION_CONFIG), "untied": untied}

    def spec(self, config: Config) -> dict[str, Any]:
        self._validate_config(config)
        # A copy through JSON: parts that the template shares become separate.
        spec: dict[str, Any] = json.loads(json.dumps(self.template))
        spec |= {"zoo": 1, "name": self.name}
        for field in self.fields:
            value = field.read(config)
            for path in field.paths.split():
                set_path(spec, path, value)
        self.update_spec(spec, config)
        for side in ("encoder", "decoder"):
            attention = get_path(spec, f"model.{side}.attention")
            if attention and attention["heads"] == 1:  # transformers projects one head too
                attention["project"] = "qkv"
        return spec

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        config = {key: value for key, value in original.items() if key not in _DROPPED_KEYS}
        config |= {"model_type": self.name, "architectures": [self.model_classes[0]]}
        for required in self.required_values:
            config[required.key] = required.value
        model_type = str(get_path(spec, "model.type")).rpartition(":")[2]
        if model_type not in self.model_types:
            supported = " or ".join(f"'{name}'" for name in self.model_types)
            raise ZooError(
                f"model.type is '{model_type}', but an export to {self.name} needs {supported}"
            )
        for field in self.fields:
            path = field.paths.split()[0]
            value = get_path(spec, path) if field.default is None else self.require(spec, path)
            config[field.key] = None if value is None else field.write(value)
        self.update_config(config, spec)
        self._check_roundtrip(spec, {**config, **self.implicit_config(spec)})
        return config

    @property
    def model_types(self) -> tuple[str, ...]:
        """The models of the zoo that can be exported."""
        return (self.template["model"]["type"],)

    def require(self, spec: Mapping[str, Any], path: str) -> Any:
        """Return the value at a path of a spec; raise ZooError if it is not set."""
        value = get_path(spec, path)
        if value is None:
            raise ZooError(f"{path} is not set, but an export to {self.name} needs it")
        return value

    def is_tied(self, config: Config) -> bool:
        """Return whether the output shares the embedding table according to a config."""
        return True

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `extend_config` would add to the config of an export."""
        return {}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        """Set the values of a spec that `fields` do not cover."""

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        """Set the values of a config that `fields` do not cover."""

    def _validate_config(self, config: Config) -> None:
        classes = config.get("architectures") or [self.model_classes[0]]
        if not isinstance(classes, list) or not any(c in classes for c in self.model_classes):
            supported = ", ".join(self.model_classes)
            raise config_error("architectures", classes, f"supported values: {supported}")
        if config.get("quantization_config"):
            raise config_error(
                "quantization_config",
                config["quantization_config"],
                "quantized weights are not supported",
            )
        for required in self.required_values:
            required.check(config)

    def _check_roundtrip(self, spec: Mapping[str, Any], config: Config) -> None:
        """Raise ZooError unless importing the config gives the same spec."""
        imported = load_spec(self.spec(config), importer=self).resolve()
        ours, theirs = (
            canonical(resolved["model"], get_path(resolved, self.dim_path))
            for resolved in (spec, imported)
        )
        for path, our_value, their_value in differences(ours, theirs):
            if path not in self.unchecked_spec_paths:
                raise ZooError(
                    f"{path} is {our_value!r}, but {self.name} in transformers has {their_value!r}"
                )


def _read_eos_token_id(path: Path) -> dict[str, Any]:
    """Return the end tokens of the generation config, which override those of the config."""
    generation_config = read_json(path) if path.is_file() else None
    eos = generation_config.get("eos_token_id") if isinstance(generation_config, dict) else None
    return {} if eos is None else {"eos_token_id": eos}
