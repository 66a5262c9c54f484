"""ELECTRA: BERT's encoder with narrower embeddings."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.config_fields import ConfigField
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import ABSOLUTE, ENCODER, ENCODER_ONLY, TIED, bert_fields
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.encoders.roberta import CLASSIFICATION_HEAD
from zoo_huggingface.templates import masked_lm_template


class Electra(EncoderImporter):
    """ELECTRA, with or without a head, or as a sentence encoder (Clark et al. 2020)."""

    name = "electra"
    model_classes = (
        "ElectraForMaskedLM",
        "ElectraModel",
        "ElectraForSequenceClassification",
        "ElectraForTokenClassification",
    )
    inner: ClassVar[Mapping[str, Any]] = {"activation": "gelu"}
    inner_dropout = True
    head_rules = CLASSIFICATION_HEAD
    embedding_key = "electra.embeddings.word_embeddings.weight"
    tied_weight_names = ("generator_lm_head.weight",)
    template = masked_lm_template(ENCODER)
    fields = (
        *bert_fields(without=("hidden_size",)),
        ConfigField("embedding_size", "model.source.dim", int, 128),
        ConfigField("hidden_size", "model.encoder.dim", int, 256),
        ConfigField("max_position_embeddings", "model.encoder.position.length"),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (ABSOLUTE, *ENCODER_ONLY, TIED)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys(
            {
                "heads of other tasks use it": """
                    summary_activation summary_last_dropout summary_type summary_use_proj
                    """
            }
        ),
    }
