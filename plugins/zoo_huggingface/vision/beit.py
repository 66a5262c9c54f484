"""BEiT."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import config_error, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import transformer_template
from zoo_huggingface.vision.vit import ViT

_CLASSES = {"classifier": "BeitForImageClassification", "one-tower": "BeitModel"}
_EACH, _SHARED = "use_relative_position_bias", "use_shared_relative_position_bias"
_ABSOLUTE, _MEAN = "use_absolute_position_embeddings", "use_mean_pooling"
_SCALE = "layer_scale_init_value"
_TABLE = "beit.encoder.relative_position_bias.relative_position_bias_table"


class Beit(ViT):
    """BEiT with a classifier or without a head, for images of one size (Bao et al. 2022)."""

    name = "beit"
    image_processor = "Beit"
    model_classes = tuple(_CLASSES.values())
    headless_classes = ()  # without a head it is a tower
    unchecked_spec_paths = ()
    dim_path = "model.source.dim model.source.embedding.dim"
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "classifier",
            "source": {"type": "patches"},
            "encoder": transformer_template(
                attention={"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": "qvo"},
                norm={"place": "pre"},
            ),
        },
        "objective": "cross-entropy",
        "metrics": ["accuracy"],
    }
    fields = tuple(field for field in ViT.fields if field.key != "qkv_bias")
    used_keys = (*ViT.used_keys, _EACH, _SHARED, _ABSOLUTE, _MEAN, _SCALE)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **ViT.ignored_keys,
        **ignored_keys(
            {
                "it affects training only": "drop_path_rate use_mask_token",
                "heads of other tasks use it": """
                    auxiliary_channels auxiliary_concat_input auxiliary_loss_weight
                    auxiliary_num_convs out_features out_indices pool_scales reshape_hidden_states
                    segmentation_indices semantic_loss_ignore_index stage_names use_auxiliary_head
                    vocab_size _out_features _out_indices
                    """,
            }
        ),
    }

    @property
    def model_types(self) -> tuple[str, ...]:
        return tuple(_CLASSES)

    def map(self, config: Config) -> dict[str, Any]:
        text = (MAPS / f"{self.name}.yaml").read_text(encoding="utf-8")
        content: dict[str, Any] = yaml.safe_load(text)
        position, rename = "encoder.position", content["rename"]
        if get_value(config, _SHARED, bool, False):
            part = f"{position}.parts.1" if get_value(config, _ABSOLUTE, bool, False) else position
            rename[f"{part}.table.weight"] = _TABLE
            position = f"{position}.parts.0"
        absolute = {"theirs": "beit.embeddings.position_embeddings", "do": [{"squeeze": 0}]}
        content["convert"].append({**absolute, "ours": f"{position}.table.weight"})
        norm = "norm.{w:weight|bias}"
        pooled, prefix = rename.pop(norm), ""
        if _is_bare(config):
            prefix = "source."
            rename = {_in_tower(ours): theirs for ours, theirs in rename.items()}
            for rule in content["convert"]:
                rule["ours"] = _in_tower(rule["ours"])
        if get_value(config, _MEAN, bool, True):
            inner, outer = f"{prefix}encoder.", f"{prefix}encoder.encoder."
            rename = {_replace(ours, inner, outer): theirs for ours, theirs in rename.items()}
            for rule in content["convert"]:
                rule["ours"] = _replace(rule["ours"], inner, outer)
            rename[f"{inner}{norm}"] = pooled
        return {**content, "rename": rename}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        encoder = spec["model"]["encoder"]
        encoder["position"] = {"type": "learned"}
        super().update_spec(spec, config)
        self._set_positions(encoder, spec["model"], config)
        scale = get_value(config, _SCALE, float, 0.1)
        encoder["layer_scale"] = scale if scale > 0 else None
        pooling = "first"
        if get_value(config, _MEAN, bool, True):
            eps = encoder["norm"]["eps"]
            encoder["norm"]["final"] = False
            pooled = {"type": "normed-pooling", "pooling": "rest", "norm": {"eps": eps}}
            spec["model"]["encoder"] = {**pooled, "encoder": encoder}
            pooling = "summary"
        # One head of an inner encoder is projected too, as that of an outer one.
        if encoder["attention"]["heads"] == 1:
            encoder["attention"]["project"] = "qkv"
        spec["model"]["pooling"] = pooling
        if _is_bare(config):
            del spec["objective"], spec["metrics"]
            model = spec["model"]
            tower = {"embedding": model["source"], "encoder": model["encoder"], "pooling": pooling}
            spec["model"] = {"type": "one-tower", "source": tower}

    def _set_positions(
        self, encoder: dict[str, Any], model: Mapping[str, Any], config: Config
    ) -> None:
        side = model["source"]["image_size"] // model["source"]["size"]
        bias = {"type": "grid-bias", "size": side}
        each, shared, absolute = (
            get_value(config, key, bool, False) for key in (_EACH, _SHARED, _ABSOLUTE)
        )
        if each and shared:
            raise config_error(_SHARED, shared, f"it cannot be combined with '{_EACH}'")
        if each:
            encoder["pattern"] = [{"position": bias}]
        parts = [*([encoder["position"]] if absolute else []), *([bias] if shared else [])]
        combined = {"type": "combined", "parts": parts}
        encoder["position"] = combined if len(parts) > 1 else next(iter(parts), None)

    def set_head(self, spec: dict[str, Any], config: Config) -> None:
        if not _is_bare(config):
            super().set_head(spec, config)

    def fill_config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        model, bare = spec["model"], _name(spec["model"]) == "one-tower"
        if bare:
            tower = model["source"]
            model = {"source": tower["embedding"], "encoder": tower["encoder"]}
        mean = _name(model["encoder"]) == "normed-pooling"
        if mean:
            model = {**model, "encoder": model["encoder"]["encoder"]}
        config = super().fill_config({**spec, "model": model}, original)
        config["architectures"] = [_CLASSES["one-tower" if bare else "classifier"]]
        return {**config, _MEAN: mean, "use_mask_token": False}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        encoder = spec["model"]["encoder"]
        position = encoder["position"] or {}
        kinds = [_name(part) for part in position.get("parts", [position])]
        own = any(kind.get("position") for kind in encoder["pattern"] or ())
        config |= {_ABSOLUTE: "learned" in kinds, _SHARED: "grid-bias" in kinds, _EACH: own}
        config[_SCALE] = encoder["layer_scale"] or 0.0

    def image_side(self, spec: Mapping[str, Any]) -> int:
        side: int = self.require(spec, "model.source.image_size")
        return side


def _is_bare(config: Config) -> bool:
    return _CLASSES["one-tower"] in (config.get("architectures") or ())


def _name(part: Mapping[str, Any]) -> str:
    """Return the name of a component in a resolved spec, without its plugin."""
    return str(part.get("type")).rpartition(":")[2]


def _in_tower(parameter: str) -> str:
    """Return the name of a parameter of a classifier in a tower."""
    if parameter.startswith("encoder."):
        return f"source.{parameter}"
    return _replace(parameter, "source.", "source.embedding.")


def _replace(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if name.startswith(old) else name
