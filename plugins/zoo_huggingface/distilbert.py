"""DistilBERT: half of BERT, without segments."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.bert import ENCODER, TIED
from zoo_huggingface.readers import Reader
from zoo_huggingface.settings import ACTIVATIONS, Setting


class DistilBert(Reader):
    """DistilBERT with its masked-token head, or without one as a sentence encoder (Sanh 2019)."""

    name = "distilbert"
    heads = ("DistilBertForMaskedLM",)
    plain = "DistilBertModel"
    activation = "activation"
    table = "distilbert.embeddings.word_embeddings.weight"
    copies = ("vocab_projector.weight",)
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
        Setting("vocab_size", "model.source.vocab"),
        Setting("dim", "model.source.dim"),
        Setting("n_layers", "model.encoder.layers"),
        Setting("n_heads", "model.encoder.attention.heads"),
        Setting("hidden_dim", "model.encoder.feed_forward.hidden"),
        Setting(
            "activation", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        Setting("dropout", "model.encoder.dropout", float, 0.1),
        Setting("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
        Setting("initializer_range", "model.source.std", float, 0.02),
        Setting("max_position_embeddings", "model.encoder.position.length", int, 512),
        Setting("pad_token_id", "model.source.padding", int, 0, least=0),
    )
    only = (TIED,)
