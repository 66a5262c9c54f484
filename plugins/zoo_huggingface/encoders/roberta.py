"""RoBERTa: BERT's encoder, with positions counted from the padding token ID + 1."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.encoders.bert import ABSOLUTE, ENCODER, ENCODER_ONLY, FIELDS, TIED
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import masked_lm_template

POSITION_OFFSET = 2
"""Unused rows at the start of the position table; ``maps/roberta.yaml`` removes them."""
PADDING = RequiredValue(
    "pad_token_id", POSITION_OFFSET - 1, f"positions start at {POSITION_OFFSET}, after it"
)
CLASSIFICATION_HEAD: Mapping[str, Mapping[str, str]] = {
    "classifier": {"out.{w:weight|bias}": "classifier.out_proj.{w}"},
    "tagger": {"out.{w:weight|bias}": "classifier.{w}"},
}
"""The output layer, whose name in the file depends on the head."""


class Roberta(EncoderImporter):
    """RoBERTa, with or without a head, or as a sentence encoder (Liu et al. 2019)."""

    name = "roberta"
    model_classes = (
        "RobertaForMaskedLM",
        "RobertaModel",
        "RobertaForSequenceClassification",
        "RobertaForTokenClassification",
    )
    inner: ClassVar[Mapping[str, Any]] = {"activation": "tanh"}
    inner_dropout = True
    head_rules = CLASSIFICATION_HEAD
    embedding_key = "roberta.embeddings.word_embeddings.weight"
    tied_weight_names = ("lm_head.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"lm_head.decoder.bias": "lm_head.bias"}
    template = masked_lm_template(ENCODER, source={"type": "token", "padding": 1})
    fields = (
        *FIELDS,
        ConfigField(
            "max_position_embeddings",
            "model.encoder.position.length",
            to_spec=lambda rows: rows - POSITION_OFFSET,
            to_config=lambda length: length + POSITION_OFFSET,
        ),
    )
    required_values = (
        ABSOLUTE,
        *ENCODER_ONLY,
        TIED,
        PADDING,
    )

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        Architecture.set_padding(self, spec, config)  # positions are counted from it
