"""Marian: the Transformer of OPUS-MT's translators."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ACTIVATIONS,
    ConfigField,
    RequiredValue,
    at,
    config_error,
    get_eos_id,
    get_value,
)

_PART: Mapping[str, Any] = {
    "type": "transformer",
    "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
    "feed_forward": {},
    "norm": {"place": "post"},
    "position": {"type": "sinusoidal", "layout": "halves"},
}
_BOTH = "model.encoder.{0} model.decoder.{0}"


class Marian(Architecture):
    """Marian, with one table for source, target and output (Junczys-Dowmunt 2018)."""

    name = "marian"
    heads = ("MarianMTModel",)
    table = "model.shared.weight"
    tied_weight_names = (
        "lm_head.weight",
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
    )
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "seq2seq",
            "source": {"type": "token"},
            "shared": True,
            "encoder": _PART,
            "decoder": {**_PART, "output": {"tied": True, "bias": True}},
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("d_model", "model.source.dim"),
        ConfigField("encoder_layers", "model.encoder.layers"),
        ConfigField("decoder_layers", "model.decoder.layers"),
        ConfigField("encoder_attention_heads", "model.encoder.attention.heads"),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads"),
        ConfigField("encoder_ffn_dim", "model.encoder.feed_forward.hidden"),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden"),
        ConfigField(
            "activation_function",
            _BOTH.format("feed_forward.activation"),
            str,
            "gelu",
            words=ACTIVATIONS,
        ),
        ConfigField("scale_embedding", "model.source.scaled", bool, False),
        ConfigField("pad_token_id", "model.source.padding", least=0),
        ConfigField("decoder_start_token_id", "model.bos", least=0),
        ConfigField("dropout", _BOTH.format("dropout"), float, 0.1),
        ConfigField("attention_dropout", _BOTH.format("attention.align.dropout"), float, 0.0),
        ConfigField("init_std", "model.source.std", float, 0.02),
    )
    only = (
        RequiredValue(
            "share_encoder_decoder_embeddings", True, "source and target share a table here"
        ),
        RequiredValue("tie_word_embeddings", True, "the output shares the table"),
    )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        made["model"]["eos"] = get_eos_id(config)
        decoder_vocab = get_value(config, "decoder_vocab_size", int, None)
        if decoder_vocab not in (None, made["model"]["source"]["vocab"]):
            raise config_error(
                "decoder_vocab_size", decoder_vocab, "source and target share a table here"
            )
        if config.get("untied"):
            raise config_error(
                "tie_word_embeddings", True, f"but '{self.tied_weight_names[0]}' differs"
            )

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        made["eos_token_id"] = at(spec, "model.eos")
        made["decoder_vocab_size"] = at(spec, "model.source.vocab")
        made["is_encoder_decoder"] = True
        # Else transformers ends every text of the greatest length with symbol 0.
        made.setdefault("forced_eos_token_id", None)
