"""The towers of SigLIP alone."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path
from zoo_huggingface.vision.one_tower import (
    DIM,
    ImageTower,
    TextTower,
    own_fields,
    own_keys,
    own_template,
)
from zoo_huggingface.vision.siglip import Siglip
from zoo_huggingface.vision.two_towers import IMAGE, TEXT


class SiglipText(TextTower):
    """Text encoder of SigLIP (Zhai et al. 2023)."""

    name = "siglip_text_model"
    model_classes = ("SiglipTextModel",)
    template = own_template(Siglip, "target")
    fields = own_fields(Siglip, TEXT)
    used_keys = ("projection_size",)
    ignored_keys: ClassVar[Mapping[str, str]] = own_keys(Siglip, TEXT)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        size = config.get("projection_size")
        field = ConfigField("projection_size", DIM)
        source = spec["model"]["source"]
        source["dim"] = source["embedding"]["dim"] if size is None else field.read(config)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["projection_size"] = get_path(spec, DIM)


class SiglipVision(ImageTower):
    """Image encoder of SigLIP, with attention pooling (Zhai et al. 2023)."""

    name = "siglip_vision_model"
    image_processor = "Siglip"
    model_classes = ("SiglipVisionModel",)
    template = own_template(Siglip, "source")
    fields = own_fields(Siglip, IMAGE)
    required_values = (RequiredValue("vision_use_head", True, "the images need attention pooling"),)
    ignored_keys: ClassVar[Mapping[str, str]] = own_keys(Siglip, IMAGE)
