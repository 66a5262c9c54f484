"""BERT, and the sentence encoders made of it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.config_fields import ACTIVATIONS, ConfigField, RequiredValue
from zoo_huggingface.masked_lm import MaskedLMArchitecture

ENCODER: Mapping[str, Any] = {
    "type": "transformer",
    "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
    "feed_forward": {},
    "norm": {"embedding": True},
    "position": {"type": "learned"},
}
ABSOLUTE = RequiredValue(
    "position_embedding_type", "absolute", "positions of a text have a table here"
)
ENCODER_ONLY = (
    RequiredValue("is_decoder", False, "the zoo takes it as an encoder"),
    RequiredValue("add_cross_attention", False, "the zoo takes it as an encoder"),
)
TIED = RequiredValue("tie_word_embeddings", True, "the masked-token head shares the table")

FIELDS = (
    ConfigField("vocab_size", "model.source.vocab"),
    ConfigField("hidden_size", "model.source.dim"),
    ConfigField("num_hidden_layers", "model.encoder.layers"),
    ConfigField("num_attention_heads", "model.encoder.attention.heads"),
    ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
    ConfigField(
        "hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
    ),
    ConfigField("layer_norm_eps", "model.encoder.norm.eps model.eps", float, 1e-12),
    ConfigField("hidden_dropout_prob", "model.encoder.dropout", float, 0.1),
    ConfigField(
        "attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.1
    ),
    ConfigField("initializer_range", "model.source.std", float, 0.02),
    ConfigField("type_vocab_size", "model.source.segments", int, 2, least=0),
)


class Bert(MaskedLMArchitecture):
    """BERT with its masked-token head, or without one as a sentence encoder (Devlin 2019)."""

    name = "bert"
    heads = ("BertForMaskedLM", "BertForPreTraining")
    base_model_class = "BertModel"
    table = "bert.embeddings.word_embeddings.weight"
    tied_weight_names = ("cls.predictions.decoder.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {"type": "masked-lm", "source": {"type": "token"}, "encoder": ENCODER},
        "objective": "cross-entropy",
    }
    settings = (
        *FIELDS,
        ConfigField("max_position_embeddings", "model.encoder.position.length"),
        ConfigField("pad_token_id", "model.source.padding", int, 0, least=0),
    )
    only = (ABSOLUTE, *ENCODER_ONLY, TIED)
