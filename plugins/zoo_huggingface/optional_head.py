"""Base class of encoders of images and audio: with a head, or without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import ConfigField

_FEATURES = "features"
_PARTS = ("source", "encoder")


class OptionalHead(Architecture):
    """Encoder with a head, or the model `features` without one.

    Without a head it is a base for training: its parts are those of the model with a head.
    """

    headless_classes: ClassVar[tuple[str, ...]]
    """The classes of transformers without a head that is imported; an export names the first."""
    head_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of `fields` that only describe the head."""

    @property
    def model_types(self) -> tuple[str, ...]:
        return (*super().model_types, _FEATURES)

    def has_head(self, config: Config) -> bool:
        """Return whether a config names a class with a head; without a class it does."""
        named = config.get("architectures") or ()
        return not any(name in self.headless_classes for name in named)

    def spec(self, config: Config) -> dict[str, Any]:
        spec = super().spec(config)
        if not self.has_head(config):
            model = spec["model"]
            spec["model"] = {"type": _FEATURES, **{part: model[part] for part in _PARTS}}
            for section in ("objective", "sampler", "metrics"):
                spec.pop(section, None)
            spec.get("preprocessing", {}).pop("target", None)
        return spec

    def exported_fields(self, spec: Mapping[str, Any]) -> Sequence[ConfigField]:
        if not is_headless(spec):
            return self.fields
        return [field for field in self.fields if field.key not in self.head_keys]

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        if is_headless(spec):
            config["architectures"] = [self.headless_classes[0]]
            for key in self.head_keys:
                config.setdefault(key, self.default(key))


def is_headless(spec: Mapping[str, Any]) -> bool:
    """Return whether the model of a spec is `features`."""
    return str(spec["model"].get("type")).rpartition(":")[2] == _FEATURES
