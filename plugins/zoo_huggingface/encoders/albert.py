"""ALBERT: BERT with narrower embeddings and one block for all layers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue, config_error
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import ABSOLUTE, ENCODER, ENCODER_ONLY, TIED, bert_fields
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import masked_lm_template

_DROPOUT = ("classifier_dropout_prob", "hidden_dropout_prob")


class Albert(EncoderImporter):
    """ALBERT, with or without a head, or as a sentence encoder (Lan et al. 2020)."""

    name = "albert"
    model_classes = (
        "AlbertForMaskedLM",
        "AlbertForPreTraining",
        "AlbertModel",
        "AlbertForSequenceClassification",
        "AlbertForTokenClassification",
    )
    activation_in_head = True
    inner: ClassVar[Mapping[str, Any]] = {"activation": "tanh"}
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": _DROPOUT,
        "tagger": _DROPOUT,
    }
    embedding_key = "albert.embeddings.word_embeddings.weight"
    tied_weight_names = ("predictions.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"predictions.decoder.bias": "predictions.bias"}
    template = masked_lm_template({**ENCODER, "share_layers": True})
    fields = (
        *bert_fields(
            without=("hidden_size",),
            hidden_act="gelu_new",
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
        ConfigField("embedding_size", "model.source.dim", int, 128),
        ConfigField("hidden_size", "model.encoder.dim", int, 4096),
        ConfigField("max_position_embeddings", "model.encoder.position.length", int, 512),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (
        ABSOLUTE,
        *ENCODER_ONLY,
        TIED,
        RequiredValue("num_hidden_groups", 1, "all layers should have one block"),
        RequiredValue("inner_group_num", 1, "all layers should have one block"),
    )
    used_keys = ("id2label", "num_labels", "problem_type", "classifier_dropout_prob")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys(
            {
                "transformers does not read it": """
                    down_scale_factor gap_size layers_to_keep net_structure_type num_memory_blocks
                    """
            }
        ),
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        if model["source"]["dim"] == model["encoder"]["dim"]:
            raise config_error(
                "embedding_size",
                model["source"]["dim"],
                "it should differ from 'hidden_size': embeddings are always projected",
            )
        super().update_spec(spec, config)
