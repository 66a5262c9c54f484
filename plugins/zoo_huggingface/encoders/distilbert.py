"""DistilBERT: BERT with half the layers, without segment embeddings."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.config_fields import ConfigField
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import ENCODER, TIED
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import activation_field, masked_lm_template


class DistilBert(EncoderImporter):
    """DistilBERT, with or without a head, or as a sentence encoder (Sanh et al. 2019)."""

    name = "distilbert"
    model_classes = (
        "DistilBertForMaskedLM",
        "DistilBertModel",
        "DistilBertForSequenceClassification",
        "DistilBertForTokenClassification",
    )
    activation_in_head = True
    inner: ClassVar[Mapping[str, Any]] = {"activation": "relu"}
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": ("seq_classif_dropout",),
        "tagger": ("dropout",),
    }
    used_keys = ("id2label", "num_labels", "problem_type", "seq_classif_dropout")
    embedding_key = "distilbert.embeddings.word_embeddings.weight"
    tied_weight_names = ("vocab_projector.weight",)
    template = masked_lm_template({**ENCODER, "norm": {"embedding": True, "eps": 1e-12}}, eps=1e-12)
    fields = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("dim", "model.source.dim"),
        ConfigField("n_layers", "model.encoder.layers"),
        ConfigField("n_heads", "model.encoder.attention.heads"),
        ConfigField("hidden_dim", "model.encoder.feed_forward.hidden"),
        activation_field("activation", "encoder", "gelu"),
        ConfigField("dropout", "model.encoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
        ConfigField("initializer_range", "model.source.std", float, 0.02),
        ConfigField("max_position_embeddings", "model.encoder.position.length", int, 512),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (TIED,)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys(
            {
                "heads of other tasks use it": "qa_dropout",
                "it affects initialisation only": "sinusoidal_pos_embds",
            }
        ),
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    }
