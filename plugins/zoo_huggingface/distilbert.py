"""DistilBERT: half of BERT, without segments."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.bert import ENCODER, TIED
from zoo_huggingface.config_fields import ACTIVATIONS, ConfigField
from zoo_huggingface.masked_lm import MaskedLMArchitecture


class DistilBert(MaskedLMArchitecture):
    """DistilBERT with its masked-token head, or without one as a sentence encoder (Sanh 2019)."""

    name = "distilbert"
    heads = ("DistilBertForMaskedLM",)
    base_model_class = "DistilBertModel"
    activation = "activation"
    table = "distilbert.embeddings.word_embeddings.weight"
    tied_weight_names = ("vocab_projector.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "masked-lm",
            "source": {"type": "token"},
            "encoder": {**ENCODER, "norm": {"embedding": True, "eps": 1e-12}},
            "eps": 1e-12,
        },
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("dim", "model.source.dim"),
        ConfigField("n_layers", "model.encoder.layers"),
        ConfigField("n_heads", "model.encoder.attention.heads"),
        ConfigField("hidden_dim", "model.encoder.feed_forward.hidden"),
        ConfigField(
            "activation", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        ConfigField("dropout", "model.encoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
        ConfigField("initializer_range", "model.source.std", float, 0.02),
        ConfigField("max_position_embeddings", "model.encoder.position.length", int, 512),
        ConfigField("pad_token_id", "model.source.padding", int, 0, least=0),
    )
    only = (TIED,)
