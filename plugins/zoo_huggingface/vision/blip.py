"""BLIP."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import ACTIVATIONS, transformer_template
from zoo_huggingface.vision.two_towers import IMAGE, TEXT, TextImageImporter, part_keys

_LENGTH = "model.encoder.position.length"
_TIED = "the output should share the table"


def _activation(part: str, paths: str) -> ConfigField:
    return ConfigField(f"{part}.hidden_act", paths, str, "gelu", value_map=ACTIVATIONS)


class Blip(TextImageImporter):
    """BLIP for captions of square images (Li et al. 2022)."""

    name = "blip"
    image_processor = "Blip"
    model_classes = ("BlipForConditionalGeneration",)
    padding_path = "model.target.padding"
    unchecked_spec_paths = ("model.source.image_size",)
    embedding_key = "text_decoder.bert.embeddings.word_embeddings.weight"
    copies: ClassVar[Mapping[str, str]] = {
        "text_decoder.cls.predictions.decoder.weight": embedding_key,
        "text_decoder.cls.predictions.decoder.bias": "text_decoder.cls.predictions.bias",
    }
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "seq2seq",
            "source": {"type": "patches"},
            "encoder": transformer_template(norm={"place": "pre"}, position={"type": "learned"}),
            "target": {"type": "token"},
            "decoder": transformer_template(
                norm={"place": "post", "embedding": True},
                position={"type": "learned"},
                output={"tied": True, "bias": True, "transform": {}},
            ),
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    fields = (
        ConfigField(f"{IMAGE}.hidden_size", "model.source.dim", int, 768),
        ConfigField(f"{IMAGE}.patch_size", "model.source.size", int, 16),
        ConfigField(f"{IMAGE}.intermediate_size", "model.encoder.feed_forward.hidden", int, 3072),
        ConfigField(f"{IMAGE}.num_hidden_layers", "model.encoder.layers", int, 12),
        ConfigField(f"{IMAGE}.num_attention_heads", "model.encoder.attention.heads", int, 12),
        _activation(IMAGE, "model.encoder.feed_forward.activation"),
        ConfigField(f"{IMAGE}.layer_norm_eps", "model.encoder.norm.eps", float, 1e-5),
        ConfigField(
            f"{IMAGE}.attention_dropout", "model.encoder.attention.align.dropout", float, 0.0
        ),
        ConfigField(f"{TEXT}.vocab_size", "model.target.vocab", int, 30524),
        ConfigField(f"{TEXT}.hidden_size", "model.target.dim", int, 768),
        ConfigField(f"{TEXT}.initializer_range", "model.target.std", float, 0.02),
        ConfigField(f"{TEXT}.intermediate_size", "model.decoder.feed_forward.hidden", int, 3072),
        ConfigField(f"{TEXT}.num_hidden_layers", "model.decoder.layers", int, 12),
        ConfigField(f"{TEXT}.num_attention_heads", "model.decoder.attention.heads", int, 8),
        ConfigField(f"{TEXT}.max_position_embeddings", "model.decoder.position.length", int, 512),
        _activation(
            TEXT,
            "model.decoder.feed_forward.activation model.decoder.output.transform.activation",
        ),
        ConfigField(
            f"{TEXT}.layer_norm_eps",
            "model.decoder.norm.eps model.decoder.output.transform.eps",
            float,
            1e-12,
        ),
        ConfigField(f"{TEXT}.hidden_dropout_prob", "model.decoder.dropout", float, 0.0),
        ConfigField(
            f"{TEXT}.attention_probs_dropout_prob",
            "model.decoder.attention.align.dropout",
            float,
            0.0,
        ),
        ConfigField(f"{TEXT}.bos_token_id", "model.bos", int, 30522, minimum=0),
        ConfigField(f"{TEXT}.sep_token_id", "model.eos", int, 102, minimum=0),
    )
    used_keys = (*TextImageImporter.used_keys, f"{TEXT}.pad_token_id")
    required_values = (
        RequiredValue("tie_word_embeddings", True, _TIED),
        RequiredValue(f"{TEXT}.tie_word_embeddings", True, _TIED),
        RequiredValue(f"{TEXT}.is_decoder", True, "the texts need cross-attention to the image"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **ignored_keys(
            {
                "it affects initialisation only": """
                    initializer_factor initializer_range logit_scale_init_value
                    """,
                "it affects training only": "label_smoothing",
                "heads of other tasks use it": "image_text_hidden_size projection_dim",
                f"generation of transformers uses '{TEXT}'": """
                    bos_token_id eos_token_id pad_token_id
                    """,
            }
        ),
        **part_keys(
            {
                "it affects initialisation only": "initializer_factor",
                "heads of other tasks use it": "projection_dim",
                "transformers does not read it": "dropout num_channels",
            }
        ),
        f"{IMAGE}.initializer_range": "it affects initialisation only",
        f"{IMAGE}.tie_word_embeddings": "images have no table to share",
        f"{TEXT}.label_smoothing": "it affects training only",
        f"{TEXT}.encoder_hidden_size": f"it is '{IMAGE}.hidden_size'",
        f"{TEXT}.eos_token_id": "texts end with sep_token_id",
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        patch = model["source"]["size"]
        side = self.read_side(config, patch)
        model["source"]["image_size"] = side
        model["encoder"]["position"]["length"] = (side // patch) ** 2 + 1
        padding = get_value(config, f"{TEXT}.pad_token_id", int, 0)
        model["target"]["padding"] = None if padding == model["eos"] else padding

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        patch = get_path(spec, "model.source.size")
        config[f"{IMAGE}.image_size"] = self.write_side(spec, _LENGTH, patch, 1)
        padding = get_path(spec, "model.target.padding")
        config[f"{TEXT}.pad_token_id"] = get_path(spec, "model.eos") if padding is None else padding
