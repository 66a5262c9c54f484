"""RoBERTa: BERT's encoder, whose positions begin behind those of the padding."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.bert import ABSOLUTE, ENCODER, READS, SETTINGS, TIED
from zoo_huggingface.readers import Reader
from zoo_huggingface.settings import Only, Setting

BEFORE = 2
"""Rows of the table of positions that no token uses, as ``maps/roberta.yaml`` knows too."""


class Roberta(Reader):
    """RoBERTa with its masked-token head, or without one as a sentence encoder (Liu 2019)."""

    name = "roberta"
    heads = ("RobertaForMaskedLM",)
    plain = "RobertaModel"
    table = "roberta.embeddings.word_embeddings.weight"
    copies = ("lm_head.decoder.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "masked-lm",
            "source": {"type": "token", "padding": 1},
            "encoder": ENCODER,
        },
        "objective": "cross-entropy",
    }
    settings = (
        *SETTINGS,
        Setting(
            "max_position_embeddings",
            "model.encoder.position.length",
            into=lambda rows: rows - BEFORE,
            back=lambda length: length + BEFORE,
        ),
    )
    only = (
        ABSOLUTE,
        *READS,
        TIED,
        Only("pad_token_id", BEFORE - 1, "positions are counted from the symbol after it"),
    )
