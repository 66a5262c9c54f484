"""SigLIP."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import transformer_template
from zoo_huggingface.vision.two_towers import (
    IMAGE,
    TEXT,
    TwoTowerImporter,
    part_keys,
    tower_fields,
)

_ATTENTION = {"scorer": "scaled-dot", "align": "soft"}
_ENCODER = transformer_template(norm={"place": "pre"}, position={"type": "learned"})
_SIZE = f"{TEXT}.projection_size"


class Siglip(TwoTowerImporter):
    """SigLIP, for square images and texts padded to one length (Zhai et al. 2023)."""

    name = "siglip"
    image_processor = "Siglip"
    model_classes = ("SiglipModel",)
    pooled = True
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "two-towers",
            "source": {
                "embedding": {"type": "patches", "class_token": False},
                "encoder": {
                    "type": "attention-pooling",
                    "encoder": _ENCODER,
                    "attention": _ATTENTION,
                    "feed_forward": {},
                    "norm": {},
                },
                "pooling": "summary",
            },
            "target": {
                "embedding": {"type": "token", "padding": None},
                "encoder": _ENCODER,
                "pooling": "last",
                "bias": True,
            },
            "scale": 10.0,
            "bias": -10.0,
        },
        "objective": "sigmoid-contrastive",
    }
    fields = (
        *tower_fields(TEXT, activation="gelu_pytorch_tanh", eps=1e-6, size=768, heads=12),
        *tower_fields(
            IMAGE, activation="gelu_pytorch_tanh", eps=1e-6, size=768, heads=12, pooled=True
        ),
        ConfigField(f"{TEXT}.vocab_size", "model.target.embedding.vocab", int, 32000),
        ConfigField(
            f"{TEXT}.max_position_embeddings", "model.target.encoder.position.length", int, 64
        ),
        ConfigField(f"{IMAGE}.patch_size", "model.source.embedding.size", int, 16),
        ConfigField(f"{IMAGE}.num_channels", "model.source.embedding.channels", int, 3),
    )
    required_values = (
        RequiredValue(f"{IMAGE}.vision_use_head", True, "the images need attention pooling"),
    )
    used_keys = (*TwoTowerImporter.used_keys, _SIZE)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **ignored_keys(
            {
                "it affects initialisation only": "initializer_factor",
                "the model has no tables to share": "tie_word_embeddings",
            }
        ),
        **part_keys(
            {
                "it affects initialisation only": "initializer_factor initializer_range",
                "the model generates no text and attends to padding": """
                    bos_token_id eos_token_id pad_token_id
                    """,
                "the model has no tables to share": "tie_word_embeddings",
            }
        ),
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        model = spec["model"]
        texts = get_value(config, _SIZE, int, None) or model["target"]["embedding"]["dim"]
        images = model["source"]["embedding"]["dim"]
        if texts != images:
            raise config_error(_SIZE, texts, f"it should equal '{IMAGE}.hidden_size', {images}")
        model["target"]["dim"] = texts

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config[_SIZE] = get_path(spec, "model.target.dim")
