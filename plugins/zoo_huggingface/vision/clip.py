"""CLIP."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import (
    ConfigField,
    config_error,
    get_mapping,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import transformer_template
from zoo_huggingface.vision.two_towers import (
    IMAGE,
    TEXT,
    TwoTowerImporter,
    nest,
    part_keys,
    tower_fields,
)

_EOS, _EOS_PATH = f"{TEXT}.eos_token_id", "model.target.eos"
_DEFAULT_EOS, _OLD_EOS = 49407, 2
"""That of the config class, and that of old configs, which is wrong: texts end with the highest."""
_PART_KEYS = {TEXT: f"{TEXT}_dict", IMAGE: f"{IMAGE}_dict"}
"""Configs of the parts in files of early versions, which replace the others."""


class CLIP(TwoTowerImporter):
    """CLIP, for square images and texts (Radford et al. 2021)."""

    name = "clip"
    image_processor = "CLIP"
    model_classes = ("CLIPModel",)
    image_tokens = 1
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "two-towers",
            "source": {
                "embedding": {"type": "patches", "bias": False},
                "encoder": transformer_template(
                    norm={"place": "pre", "embedding": True}, position={"type": "learned"}
                ),
                "pooling": "first",
            },
            "target": {
                "embedding": {"type": "token", "padding": None},
                "encoder": transformer_template(
                    norm={"place": "pre"}, position={"type": "learned"}, causal=True
                ),
                "pooling": "eos",
            },
        },
        "objective": "contrastive",
    }
    fields = (
        *tower_fields(TEXT, activation="quick_gelu", eps=1e-5, size=512, heads=8),
        *tower_fields(IMAGE, activation="quick_gelu", eps=1e-5, size=768, heads=12),
        ConfigField(f"{TEXT}.vocab_size", "model.target.embedding.vocab", int, 49408),
        ConfigField(
            f"{TEXT}.max_position_embeddings", "model.target.encoder.position.length", int, 77
        ),
        ConfigField(f"{IMAGE}.patch_size", "model.source.embedding.size", int, 32),
        ConfigField(f"{IMAGE}.num_channels", "model.source.embedding.channels", int, 3),
        ConfigField("projection_dim", "model.source.dim model.target.dim", int, 512),
    )
    used_keys = (*TwoTowerImporter.used_keys, _EOS)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **ignored_keys(
            {
                "it affects initialisation only": "initializer_factor logit_scale_init_value",
                "the model has no tables to share": "tie_word_embeddings",
            }
        ),
        **part_keys(
            {
                "it affects initialisation only": "initializer_factor initializer_range",
                "the whole model has one": "projection_dim",
                "the model generates no text, and padding follows the end token": """
                    bos_token_id pad_token_id
                    """,
                "the model has no tables to share": "tie_word_embeddings",
                "transformers removed it and never used it": "dropout",
            }
        ),
    }

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(self._merge_parts(config))

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        return super().config(spec, self._merge_parts(original))

    def _merge_parts(self, config: Config) -> dict[str, Any]:
        """Return a config without the other configs of its parts.

        As in transformers, keys that they do not have get the default of the config class.
        """
        merged = {key: value for key, value in config.items() if key not in _PART_KEYS.values()}
        for part, key in _PART_KEYS.items():
            if config.get(key) is not None:
                defaults = nest(self._defaults)[part]
                given = get_mapping(config, key)
                merged[part] = {**get_mapping(config, part), **defaults, **given}
        return merged

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        target = spec["model"]["target"]
        target["eos"] = read_eos(config, _EOS, target["embedding"]["vocab"])
        if config.get("has_tokenizer"):
            length = target["encoder"]["position"]["length"]
            texts = {"type": "text", "max_length": length, "truncate": True}
            spec["preprocessing"] = {"target": texts}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config[_EOS] = write_eos(get_path(spec, _EOS_PATH))


def read_eos(config: Config, key: str, vocab: int) -> int | None:
    """Return the end token of texts; None if it is the highest token of a text."""
    eos: int = get_value(config, key, int, _DEFAULT_EOS)
    if not 0 <= eos < vocab:
        raise config_error(key, eos, f"it should be a token ID below vocab_size ({vocab})")
    return None if eos == _OLD_EOS else eos


def write_eos(eos: int | None) -> int:
    """Return the end token of a config."""
    return _OLD_EOS if eos is None else eos
