"""MPNet: RoBERTa's encoder without segments, with a relative position bias too."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo import ZooError
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import RequiredValue, get_path, get_value
from zoo_huggingface.encoders.bert import ENCODER, ENCODER_ONLY, TIED, bert_fields
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.encoders.roberta import CLASSIFICATION_HEAD, PADDING, POSITION_OFFSET
from zoo_huggingface.templates import masked_lm_template

_BUCKETS = 32
_RELATIVE = {"type": "t5", "buckets": _BUCKETS, "max_distance": 128}
_LENGTH = "max_position_embeddings"


class MPNet(EncoderImporter):
    """MPNet, with or without a head, or as a sentence encoder (Song et al. 2020)."""

    name = "mpnet"
    model_classes = (
        "MPNetForMaskedLM",
        "MPNetModel",
        "MPNetForSequenceClassification",
        "MPNetForTokenClassification",
    )
    inner: ClassVar[Mapping[str, Any]] = {"activation": "tanh"}
    inner_dropout = True
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": ("hidden_dropout_prob",),
        "tagger": ("hidden_dropout_prob",),
    }
    head_rules = CLASSIFICATION_HEAD
    embedding_key = "mpnet.embeddings.word_embeddings.weight"
    tied_weight_names = ("lm_head.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"lm_head.decoder.bias": "lm_head.bias"}
    template = masked_lm_template(
        {**ENCODER, "position": {"type": "combined"}}, source={"type": "token", "padding": 1}
    )
    fields = bert_fields(without=("type_vocab_size",))
    required_values = (
        *ENCODER_ONLY,
        TIED,
        PADDING,
        RequiredValue(
            "relative_attention_num_buckets",
            _BUCKETS,
            f"distances are always counted in {_BUCKETS} buckets",
        ),
    )
    used_keys = ("id2label", "num_labels", "problem_type", _LENGTH)

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        Architecture.set_padding(self, spec, config)  # positions are counted from it

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        rows = get_value(config, _LENGTH, int, self._defaults[_LENGTH])
        learned = {"type": "learned", "length": rows - POSITION_OFFSET}
        spec["model"]["encoder"]["position"]["parts"] = [learned, dict(_RELATIVE)]
        super().update_spec(spec, config)

    def max_length(self, spec: Mapping[str, Any]) -> int | None:
        parts = get_path(spec, "model.encoder.position.parts")
        return next((p["length"] for p in parts or () if "length" in p), None)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        length = self.max_length(spec)
        if length is None:
            raise ZooError("model.encoder.position has no learned part, but an export needs it")
        config[_LENGTH] = POSITION_OFFSET + length
