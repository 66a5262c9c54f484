"""BART."""

from zoo_huggingface.seq2seq.encoder_decoder import (
    START,
    EncoderDecoder,
    encoder_decoder_fields,
    learned_positions,
    required_layout,
    tied_template,
)
from zoo_huggingface.templates import transformer_template


class Bart(EncoderDecoder):
    """BART with one table for source, target and output (Lewis et al. 2020)."""

    name = "bart"
    model_classes = ("BartForConditionalGeneration",)
    template = tied_template(
        transformer_template(
            norm={"place": "post", "embedding": True}, position={"type": "learned"}
        )
    )
    fields = (*encoder_decoder_fields(), START, learned_positions())
    required_values = required_layout(
        pre_norm=False, final_norm=False, embedding_norm=True, sinusoidal=False
    )
