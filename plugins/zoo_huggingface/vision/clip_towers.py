"""The towers of CLIP alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, get_path
from zoo_huggingface.vision.clip import CLIP, read_eos, write_eos
from zoo_huggingface.vision.one_tower import (
    DIM,
    ImageTower,
    OneTowerImporter,
    TextTower,
    own_fields,
    own_keys,
    own_template,
)
from zoo_huggingface.vision.two_towers import IMAGE, TEXT

_OUTER, _INNER = "model.source.encoder.", "model.source.encoder.encoder."


def _inner(path: str) -> str:
    """Return the path in the encoder whose states are pooled; both have the same norms."""
    inner = path.replace(_OUTER, _INNER)
    return f"{inner} {path}" if path.endswith("norm.eps") else inner


class _Projected(OneTowerImporter):
    """A tower of CLIP, with or without the projection of its vectors."""

    used_keys: ClassVar[tuple[str, ...]] = ("projection_dim",)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        dim = ConfigField("projection_dim", DIM, int, 512).read(config)
        is_projected = self.model_classes[1] in (config.get("architectures") or ())
        spec["model"]["source"]["dim"] = dim if is_projected else None

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        dim = get_path(spec, DIM)
        config["architectures"] = [self.model_classes[dim is not None]]
        if dim is not None:
            config["projection_dim"] = dim


class CLIPText(_Projected, TextTower):
    """Text encoder of CLIP (Radford et al. 2021), with or without its projection."""

    name = "clip_text_model"
    model_classes = ("CLIPTextModel", "CLIPTextModelWithProjection")
    template = own_template(CLIP, "target")
    fields = own_fields(CLIP, TEXT)
    used_keys = (*_Projected.used_keys, "eos_token_id")
    ignored_keys: ClassVar[Mapping[str, str]] = own_keys(CLIP, TEXT)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        source = spec["model"]["source"]
        source["eos"] = read_eos(config, "eos_token_id", source["embedding"]["vocab"])
        if config.get("has_tokenizer"):
            length = source["encoder"]["position"]["length"]
            texts = {"type": "text", "max_length": length, "truncate": True}
            spec["preprocessing"] = {"source": texts}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["eos_token_id"] = write_eos(get_path(spec, "model.source.eos"))


class CLIPVision(_Projected, ImageTower):
    """Image encoder of CLIP (Radford et al. 2021), with or without its projection."""

    name = "clip_vision_model"
    image_processor = "CLIP"
    model_classes = ("CLIPVisionModel", "CLIPVisionModelWithProjection")
    tokens = 1
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "one-tower",
            "source": {
                "embedding": CLIP.template["model"]["source"]["embedding"],
                "encoder": {
                    "type": "normed-pooling",
                    "encoder": {
                        **CLIP.template["model"]["source"]["encoder"],
                        "norm": {"place": "pre", "embedding": True, "final": False},
                    },
                    "norm": {},
                },
                "pooling": "summary",
            },
        }
    }
    fields = tuple(replace(field, paths=_inner(field.paths)) for field in own_fields(CLIP, IMAGE))
    used_keys = (*_Projected.used_keys, *ImageTower.used_keys)
    ignored_keys: ClassVar[Mapping[str, str]] = own_keys(CLIP, IMAGE)
