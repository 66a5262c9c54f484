"""RoBERTa: BERT's encoder, whose positions begin behind those of the padding."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.bert import ABSOLUTE, ENCODER, ENCODER_ONLY, FIELDS, TIED
from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.masked_lm import MaskedLMArchitecture

POSITION_OFFSET = 2
"""Rows of the table of positions that no token uses, as ``maps/roberta.yaml`` knows too."""


class Roberta(MaskedLMArchitecture):
    """RoBERTa with its masked-token head, or without one as a sentence encoder (Liu 2019)."""

    name = "roberta"
    heads = ("RobertaForMaskedLM",)
    base_model_class = "RobertaModel"
    table = "roberta.embeddings.word_embeddings.weight"
    tied_weight_names = ("lm_head.decoder.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "masked-lm",
            "source": {"type": "token", "padding": 1},
            "encoder": ENCODER,
        },
        "objective": "cross-entropy",
    }
    settings = (
        *FIELDS,
        ConfigField(
            "max_position_embeddings",
            "model.encoder.position.length",
            to_spec=lambda rows: rows - POSITION_OFFSET,
            back=lambda length: length + POSITION_OFFSET,
        ),
    )
    only = (
        ABSOLUTE,
        *ENCODER_ONLY,
        TIED,
        RequiredValue(
            "pad_token_id", POSITION_OFFSET - 1, "positions are counted from the symbol after it"
        ),
    )
