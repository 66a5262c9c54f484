"""DINOv2."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo import ZooError
from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import ConfigField, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import transformer_template
from zoo_huggingface.vision.vit import ViT

_RATIOS = range(1, 65)
_HIDDEN = "model.encoder.feed_forward.hidden"


class Dinov2(ViT):
    """DINOv2 with a classifier or without a head, for images of one size (Oquab et al. 2023)."""

    name = "dinov2"
    model_classes = ("Dinov2ForImageClassification", "Dinov2Model")
    headless_classes = ("Dinov2Model",)
    image_processor = "Bit"
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "classifier",
            "source": {"type": "patches"},
            "encoder": transformer_template(norm={"place": "pre"}, position={"type": "learned"}),
            "pooling": "first-mean",
        },
        "objective": "cross-entropy",
        "metrics": ["accuracy"],
    }
    fields = (
        *(
            field
            for field in ViT.fields
            if field.key not in ("intermediate_size", "layer_norm_eps", "patch_size")
        ),
        ConfigField("patch_size", "model.source.size", int, 14),
        ConfigField("layer_norm_eps", "model.encoder.norm.eps", float, 1e-6),
        ConfigField("layerscale_value", "model.encoder.layer_scale", float, 1.0),
        ConfigField("use_swiglu_ffn", "model.encoder.feed_forward.gated", bool, False),
    )
    used_keys = (*ViT.used_keys, "mlp_ratio")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **ViT.ignored_keys,
        **ignored_keys(
            {
                "it affects training only": "drop_path_rate use_mask_token",
                "only backbones of other models use it": """
                    apply_layernorm out_features out_indices reshape_hidden_states stage_names
                    """,
            }
        ),
    }

    def map(self, config: Config) -> Path | dict[str, Any]:
        path = MAPS / f"{self.name}.yaml"
        if not get_value(config, "use_swiglu_ffn", bool, False):
            return path
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        block, layer = "encoder.blocks.{n}.feed_forward", "dinov2.encoder.layer.{n}.mlp"
        content["rename"] = {k: v for k, v in content["rename"].items() if "mlp." not in v}
        content["rename"][f"{block}.down.{{w:weight|bias}}"] = f"{layer}.weights_out.{{w}}"
        content["convert"] += [
            {
                "theirs": f"{layer}.weights_in.{name}",
                "ours": f"{block}.{{p:gate|up}}.{name}",
                "do": ["split"],
            }
            for name in ("weight", "bias")
        ]
        return content

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        feed_forward = spec["model"]["encoder"]["feed_forward"]
        if feed_forward["gated"]:
            feed_forward["activation"] = "silu"
        feed_forward["hidden"] = _hidden(
            spec["model"]["source"]["dim"],
            get_value(config, "mlp_ratio", int, 4),
            gated=feed_forward["gated"],
        )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["use_mask_token"] = False  # only pretraining uses it, and it is not imported
        dim, hidden = get_path(spec, self.dim_path), get_path(spec, _HIDDEN)
        gated = config["use_swiglu_ffn"]
        for ratio in (config.get("mlp_ratio", 4), *_RATIOS):
            if _hidden(dim, ratio, gated=gated) == hidden:
                config["mlp_ratio"] = ratio
                return
        raise ZooError(
            f"{_HIDDEN} is {hidden}, but dinov2 in transformers needs a multiple of {dim}"
            + (", two thirds of it rounded up to a multiple of 8" if gated else "")
        )


def _hidden(dim: int, ratio: int, *, gated: bool) -> int:
    """Return the width of the feed-forward network."""
    return (int(dim * ratio * 2 / 3) + 7) // 8 * 8 if gated else dim * ratio
