"""M2M-100 and NLLB."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import config_error
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.seq2seq.encoder_decoder import (
    START,
    EncoderDecoder,
    encoder_decoder_fields,
    required_layout,
    tied_template,
)
from zoo_huggingface.templates import transformer_template


class M2M100(EncoderDecoder):
    """M2M-100 and the dense models of NLLB: pre-norm, final norms, sinusoidal positions after the
    padding token's ID (Fan et al. 2020; NLLB Team 2022)."""

    name = "m2m_100"
    generates_padding = False
    model_classes = ("M2M100ForConditionalGeneration",)
    template = tied_template(
        transformer_template(
            norm={"place": "pre"},
            position={"type": "sinusoidal", "layout": "halves", "exponents": "tensor2tensor"},
        ),
        bias=False,
    )
    fields = (
        *encoder_decoder_fields(activation="relu", scaled=True, attention_dropout=0.1),
        START,
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderDecoder.ignored_keys,
        **ignored_keys({"sinusoidal positions are computed": "max_position_embeddings"}),
    }
    required_values = required_layout(
        pre_norm=True, final_norm=True, embedding_norm=False, sinusoidal=True
    )

    def map(self, config: Config) -> Path:
        return MAPS / "marian.yaml"

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        padding = spec["model"]["source"]["padding"]
        if spec["model"]["bos"] == padding:
            raise config_error(
                "decoder_start_token_id",
                padding,
                "it should differ from pad_token_id, because padding has no position",
            )
        for side in ("encoder", "decoder"):
            spec["model"][side]["position"]["start"] = padding + 1
