"""Marian: the Transformer of the OPUS-MT translation models."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import RequiredValue, config_error, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.seq2seq.encoder_decoder import (
    START,
    EncoderDecoder,
    encoder_decoder_fields,
    required_layout,
    tied_template,
)
from zoo_huggingface.templates import transformer_template


class Marian(EncoderDecoder):
    """Marian with one table for source, target and output (Junczys-Dowmunt et al. 2018)."""

    name = "marian"
    model_classes = ("MarianMTModel",)
    template = tied_template(
        transformer_template(
            norm={"place": "post"}, position={"type": "sinusoidal", "layout": "halves"}
        )
    )
    fields = (*encoder_decoder_fields(), START)
    used_keys = ("decoder_vocab_size", "eos_token_id")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderDecoder.ignored_keys,
        **ignored_keys({"sinusoidal positions are computed": "max_position_embeddings"}),
    }
    required_values = (
        *required_layout(pre_norm=False, final_norm=False, embedding_norm=False, sinusoidal=True),
        RequiredValue(
            "share_encoder_decoder_embeddings", True, "source and target should share a table"
        ),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder_vocab = get_value(config, "decoder_vocab_size", int, None)
        if decoder_vocab not in (None, spec["model"]["source"]["vocab"]):
            raise config_error(
                "decoder_vocab_size", decoder_vocab, "source and target should share a table"
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["decoder_vocab_size"] = get_path(spec, "model.source.vocab")
