"""Marian: the Transformer of the OPUS-MT translation models."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_eos_id,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import BOTH, activation_field, seq2seq_template, transformer_template

_TRANSFORMER = transformer_template(
    norm={"place": "post"}, position={"type": "sinusoidal", "layout": "halves"}
)


class Marian(Architecture):
    """Marian with one table for source, target and output (Junczys-Dowmunt et al. 2018)."""

    name = "marian"
    model_classes = ("MarianMTModel",)
    embedding_key = "model.shared.weight"
    tied_weight_names = (
        "lm_head.weight",
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
    )
    template = seq2seq_template(
        _TRANSFORMER, {**_TRANSFORMER, "output": {"tied": True, "bias": True}}
    )
    fields = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("d_model", "model.source.dim"),
        ConfigField("encoder_layers", "model.encoder.layers"),
        ConfigField("decoder_layers", "model.decoder.layers"),
        ConfigField("encoder_attention_heads", "model.encoder.attention.heads"),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads"),
        ConfigField("encoder_ffn_dim", "model.encoder.feed_forward.hidden"),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden"),
        activation_field("activation_function", BOTH, "gelu"),
        ConfigField("scale_embedding", "model.source.scaled", bool, False),
        ConfigField("pad_token_id", "model.source.padding", minimum=0),
        ConfigField("decoder_start_token_id", "model.bos", minimum=0),
        ConfigField("dropout", BOTH.format("dropout"), float, 0.1),
        ConfigField("attention_dropout", BOTH.format("attention.align.dropout"), float, 0.0),
        ConfigField("init_std", "model.source.std", float, 0.02),
    )
    generates = True
    start_keys = ("decoder_start_token_id",)
    used_keys = ("decoder_vocab_size", "eos_token_id")
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects training only": "activation_dropout decoder_layerdrop encoder_layerdrop",
            "sinusoidal positions are computed": "max_position_embeddings",
            "transformers does not read it": "bos_token_id extra_pos_embeddings",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    required_values = (
        RequiredValue("is_encoder_decoder", True, "Marian has an encoder and a decoder"),
        RequiredValue("add_bias_logits", False, "only the bias final_logits_bias is supported"),
        RequiredValue("add_final_layer_norm", False, "a final norm is not supported"),
        RequiredValue("normalize_before", False, "only post-norm is supported"),
        RequiredValue("normalize_embedding", False, "a norm of embeddings is not supported"),
        RequiredValue(
            "static_position_embeddings", True, "only sinusoidal positions are supported"
        ),
        RequiredValue(
            "share_encoder_decoder_embeddings", True, "source and target should share a table"
        ),
        RequiredValue("tie_word_embeddings", True, "the output should share the table"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        spec["model"]["eos"] = get_eos_id(config)
        decoder_vocab = get_value(config, "decoder_vocab_size", int, None)
        if decoder_vocab not in (None, spec["model"]["source"]["vocab"]):
            raise config_error(
                "decoder_vocab_size", decoder_vocab, "source and target should share a table"
            )
        if config.get("untied"):
            raise config_error(
                "tie_word_embeddings", True, f"but '{self.tied_weight_names[0]}' differs from it"
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["eos_token_id"] = get_path(spec, "model.eos")
        config["decoder_vocab_size"] = get_path(spec, "model.source.vocab")
        config["is_encoder_decoder"] = True
        # Without it, transformers ends each text of maximum length with token 0.
        config.setdefault("forced_eos_token_id", None)
