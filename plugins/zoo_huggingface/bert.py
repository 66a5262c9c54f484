"""BERT, and the sentence encoders made of it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.readers import Reader
from zoo_huggingface.settings import ACTIVATIONS, Only, Setting

ENCODER: Mapping[str, Any] = {
    "type": "transformer",
    "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
    "feed_forward": {},
    "norm": {"embedding": True},
    "position": {"type": "learned"},
}
ABSOLUTE = Only("position_embedding_type", "absolute", "positions of a text have a table here")
READS = (
    Only("is_decoder", False, "the zoo takes it as an encoder"),
    Only("add_cross_attention", False, "the zoo takes it as an encoder"),
)
TIED = Only("tie_word_embeddings", True, "the masked-token head shares the table")

SETTINGS = (
    Setting("vocab_size", "model.source.vocab"),
    Setting("hidden_size", "model.source.dim"),
    Setting("num_hidden_layers", "model.encoder.layers"),
    Setting("num_attention_heads", "model.encoder.attention.heads"),
    Setting("intermediate_size", "model.encoder.feed_forward.hidden"),
    Setting("hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS),
    Setting("layer_norm_eps", "model.encoder.norm.eps model.eps", float, 1e-12),
    Setting("hidden_dropout_prob", "model.encoder.dropout", float, 0.1),
    Setting("attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.1),
    Setting("initializer_range", "model.source.std", float, 0.02),
    Setting("type_vocab_size", "model.source.segments", int, 2, least=0),
)


class Bert(Reader):
    """BERT with its masked-token head, or without one as a sentence encoder (Devlin 2019)."""

    name = "bert"
    heads = ("BertForMaskedLM", "BertForPreTraining")
    plain = "BertModel"
    table = "bert.embeddings.word_embeddings.weight"
    copies = ("cls.predictions.decoder.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {"type": "masked-lm", "source": {"type": "token"}, "encoder": ENCODER},
        "objective": "cross-entropy",
    }
    settings = (
        *SETTINGS,
        Setting("max_position_embeddings", "model.encoder.position.length"),
        Setting("pad_token_id", "model.source.padding", int, 0, least=0),
    )
    only = (ABSOLUTE, *READS, TIED)
