"""PEGASUS."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.seq2seq.encoder_decoder import (
    START,
    EncoderDecoder,
    encoder_decoder_fields,
    required_layout,
    tied_template,
)
from zoo_huggingface.templates import transformer_template


class Pegasus(EncoderDecoder):
    """PEGASUS: pre-norm, final norms and sinusoidal positions (Zhang et al. 2020)."""

    name = "pegasus"
    model_classes = ("PegasusForConditionalGeneration",)
    template = tied_template(
        transformer_template(
            norm={"place": "pre"}, position={"type": "sinusoidal", "layout": "halves"}
        )
    )
    fields = (*encoder_decoder_fields(), START)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderDecoder.ignored_keys,
        **ignored_keys({"sinusoidal positions are computed": "max_position_embeddings"}),
    }
    required_values = required_layout(
        pre_norm=True, final_norm=True, embedding_norm=False, sinusoidal=True
    )

    def map(self, config: Config) -> Path:
        return MAPS / "marian.yaml"
