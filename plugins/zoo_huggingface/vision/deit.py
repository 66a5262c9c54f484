"""DeiT, a ViT with a distillation token."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import get_path
from zoo_huggingface.optional_head import is_headless
from zoo_huggingface.vision.vit import ViT

_CLASSES = {False: "DeiTForImageClassification", True: "DeiTForImageClassificationWithTeacher"}
"""Class of transformers without and with the output layer of the distillation token."""


class DeiT(ViT):
    """DeiT with a classifier for one or both of its tokens, or without (Touvron et al. 2021)."""

    name = "deit"
    model_classes = (*_CLASSES.values(), "DeiTModel")
    headless_classes = ("DeiTModel",)
    image_processor = "DeiT"
    tokens = 2
    template: ClassVar[Mapping[str, Any]] = {
        **ViT.template,
        "model": {**ViT.template["model"], "source": {"type": "patches", "extra_tokens": 1}},
    }

    def map(self, config: Config) -> dict[str, Any]:
        text = (MAPS / "vit.yaml").read_text(encoding="utf-8").replace("vit.", "deit.")
        content: dict[str, Any] = yaml.safe_load(text)
        content["convert"].append(
            {
                "theirs": "deit.embeddings.distillation_token",
                "ours": "source.extra",
                "do": [{"squeeze": 0}],
            }
        )
        if _is_distilled(config):
            content["rename"] |= {
                "out.{w:weight|bias}": "cls_classifier.{w}",
                "distilled_out.{w:weight|bias}": "distillation_classifier.{w}",
            }
        return content

    def set_head(self, spec: dict[str, Any], config: Config) -> None:
        super().set_head(spec, config)
        spec["model"]["distilled"] = _is_distilled(config)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        if not is_headless(spec):
            config["architectures"] = [_CLASSES[bool(get_path(spec, "model.distilled"))]]


def _is_distilled(config: Config) -> bool:
    return _CLASSES[True] in (config.get("architectures") or ())
