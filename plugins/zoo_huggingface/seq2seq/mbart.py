"""mBART and mBART-50."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import ConfigField, get_path
from zoo_huggingface.seq2seq.encoder_decoder import (
    START,
    EncoderDecoder,
    encoder_decoder_fields,
    learned_positions,
    required_layout,
    tied_template,
)
from zoo_huggingface.templates import transformer_template

_BOS = ConfigField("bos_token_id", "model.bos", int, 0, minimum=0)


class MBart(EncoderDecoder):
    """mBART: BART for many languages, with pre-norm and final norms (Liu et al. 2020)."""

    name = "mbart"
    model_classes = ("MBartForConditionalGeneration",)
    template = tied_template(
        transformer_template(norm={"place": "pre", "embedding": True}, position={"type": "learned"})
    )
    fields = (*encoder_decoder_fields(), learned_positions())
    start_keys = ("decoder_start_token_id", "bos_token_id")
    used_keys = ("bos_token_id", "decoder_start_token_id", "eos_token_id")
    required_values = required_layout(
        pre_norm=True, final_norm=True, embedding_norm=True, sinusoidal=False
    )

    def map(self, config: Config) -> Path:
        return MAPS / "bart.yaml"

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        field = _BOS if config.get("decoder_start_token_id") is None else START
        spec["model"]["bos"] = field.read(config)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["decoder_start_token_id"] = get_path(spec, "model.bos")
