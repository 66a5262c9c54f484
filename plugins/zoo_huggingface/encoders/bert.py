"""BERT."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import activation_field, masked_lm_template, transformer_template

ENCODER = transformer_template(norm={"embedding": True}, position={"type": "learned"})
ABSOLUTE = RequiredValue(
    "position_embedding_type", "absolute", "only absolute position embeddings are supported"
)
ENCODER_ONLY = (
    RequiredValue("is_decoder", False, "only encoders are supported"),
    RequiredValue("add_cross_attention", False, "only encoders are supported"),
)
TIED = RequiredValue(
    "tie_word_embeddings", True, "the masked-token head shares the embedding table"
)

FIELDS = (
    ConfigField("vocab_size", "model.source.vocab"),
    ConfigField("hidden_size", "model.source.dim"),
    ConfigField("num_hidden_layers", "model.encoder.layers"),
    ConfigField("num_attention_heads", "model.encoder.attention.heads"),
    ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
    activation_field("hidden_act", "encoder", "gelu"),
    ConfigField("layer_norm_eps", "model.encoder.norm.eps model.eps", float, 1e-12),
    ConfigField("hidden_dropout_prob", "model.encoder.dropout", float, 0.1),
    ConfigField(
        "attention_probs_dropout_prob", "model.encoder.attention.align.dropout", float, 0.1
    ),
    ConfigField("initializer_range", "model.source.std", float, 0.02),
    ConfigField("type_vocab_size", "model.source.segments", int, 2, minimum=0),
)


def bert_fields(*, without: Collection[str] = (), **defaults: Any) -> tuple[ConfigField, ...]:
    """Return the fields of BERT for another architecture.

    Args:
        without: keys that it does not have, or that have another meaning.
        defaults: its own defaults.
    """
    kept = (field for field in FIELDS if field.key not in without)
    return tuple(replace(field, default=defaults.get(field.key, field.default)) for field in kept)


class Bert(EncoderImporter):
    """BERT, with or without a head, or as a sentence encoder (Devlin et al. 2019)."""

    name = "bert"
    model_classes = (
        "BertForMaskedLM",
        "BertForPreTraining",
        "BertModel",
        "BertForSequenceClassification",
        "BertForTokenClassification",
    )
    activation_in_head = True
    inner: ClassVar[Mapping[str, Any]] = {"activation": "tanh"}
    embedding_key = "bert.embeddings.word_embeddings.weight"
    tied_weight_names = ("cls.predictions.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"cls.predictions.decoder.bias": "cls.predictions.bias"}
    template = masked_lm_template(ENCODER)
    fields = (
        *FIELDS,
        ConfigField("max_position_embeddings", "model.encoder.position.length"),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (
        ABSOLUTE,
        *ENCODER_ONLY,
        TIED,
        RequiredValue("directionality", "bidi", "only bidirectional attention is supported"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys(
            {
                "the pooler always has the width of the states": """
                    pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
                    pooler_size_per_head pooler_type
                    """
            }
        ),
    }
