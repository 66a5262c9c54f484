"""Transformers with an encoder and a decoder and the config keys of fairseq."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_eos_id,
    get_path,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import BOTH, SpecTemplate, activation_field, seq2seq_template

START = ConfigField("decoder_start_token_id", "model.bos", minimum=0)


def tied_template(transformer: SpecTemplate, *, bias: bool = True) -> SpecTemplate:
    """Return a model with one table for source, target and output, and a bias of the logits."""
    return seq2seq_template(transformer, {**transformer, "output": {"tied": True, "bias": bias}})


def encoder_decoder_fields(
    *, activation: str = "gelu", scaled: bool = False, attention_dropout: float = 0.0
) -> Sequence[ConfigField]:
    """Return the fields of all these architectures, given defaults of the config class."""
    return (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("d_model", "model.source.dim"),
        ConfigField("encoder_layers", "model.encoder.layers"),
        ConfigField("decoder_layers", "model.decoder.layers"),
        ConfigField("encoder_attention_heads", "model.encoder.attention.heads"),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads"),
        ConfigField("encoder_ffn_dim", "model.encoder.feed_forward.hidden"),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden"),
        activation_field("activation_function", BOTH, activation),
        ConfigField("scale_embedding", "model.source.scaled", bool, scaled),
        ConfigField("pad_token_id", "model.source.padding", minimum=0),
        ConfigField("dropout", BOTH.format("dropout"), float, 0.1),
        ConfigField(
            "attention_dropout", BOTH.format("attention.align.dropout"), float, attention_dropout
        ),
        ConfigField("init_std", "model.source.std", float, 0.02),
    )


def learned_positions() -> ConfigField:
    """Return the field of learned positions, whose table has two further rows."""
    return ConfigField("max_position_embeddings", BOTH.format("position.length"), int, 1024)


def required_layout(
    *, pre_norm: bool, final_norm: bool, embedding_norm: bool, sinusoidal: bool
) -> Sequence[RequiredValue]:
    """Return the values of keys that older configs have, but that transformers does not read."""
    reason = "transformers has only one layout of this architecture"
    return (
        RequiredValue("is_encoder_decoder", True, "the model has an encoder and a decoder"),
        RequiredValue("tie_word_embeddings", True, "the output should share the table"),
        RequiredValue("add_bias_logits", False, "only the bias final_logits_bias is supported"),
        RequiredValue("add_final_layer_norm", final_norm, reason),
        RequiredValue("normalize_before", pre_norm, reason),
        RequiredValue("normalize_embedding", embedding_norm, reason),
        RequiredValue("static_position_embeddings", sinusoidal, reason),
    )


class EncoderDecoder(Architecture):
    """Transformer with one table for source, target and output."""

    embedding_key = "model.shared.weight"
    tied_weight_names = (
        "lm_head.weight",
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
    )
    generates = True
    start_keys = ("decoder_start_token_id",)
    used_keys = ("eos_token_id",)
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects training only": "activation_dropout decoder_layerdrop encoder_layerdrop",
            "transformers does not read it": """
                bos_token_id extra_pos_embeddings force_bos_token_to_be_generated replacing_rate
                save_step student_decoder_layers student_encoder_layers
                """,
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        spec["model"]["eos"] = get_eos_id(config)
        if config.get("untied"):
            raise config_error(
                "tie_word_embeddings", True, f"but '{self.tied_weight_names[0]}' differs from it"
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["eos_token_id"] = get_path(spec, "model.eos")
        config["is_encoder_decoder"] = True
        # Without it, transformers ends each text of maximum length with a default token.
        config.setdefault("forced_eos_token_id", None)
