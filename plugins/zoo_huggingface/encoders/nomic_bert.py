"""NomicBERT: BERT with rotary positions, gated feed-forward networks and fewer biases."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo.plugin import TensorReader
from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import (
    ConfigField,
    config_error,
    format_value,
    get_mapping,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import TIED, bert_fields
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import masked_lm_template, transformer_template

_THETA = 1000.0
_OLD_NAMES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "attn_pdrop": "attention_probs_dropout_prob",
    "resid_pdrop": "hidden_dropout_prob",
    "rotary_emb_base": "rope_theta",
    "n_positions": "max_position_embeddings",
}
"""Keys of the published configs, which belong to code in the folder, and those of transformers."""
_OLD_VALUES: Mapping[str, tuple[Any, ...]] = {
    "activation_function": ("swiglu",),
    "causal": (False,),
    "mlp_fc1_bias": (False,),
    "mlp_fc2_bias": (False,),
    "parallel_block": (False,),
    "prenorm": (False,),
    "qkv_proj_bias": (False,),
    "rotary_emb_fraction": (1.0,),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (None,),
    "rotary_scaling_factor": (None, 1.0),
    "scale_attn_by_inverse_layer_idx": (False,),
    "scale_attn_weights": (True,),
    "use_rms_norm": (False, None),
}
"""Values of the published configs that are supported."""
_OLD_IGNORED = ignored_keys(
    {
        "it affects training only": "embd_pdrop",
        "it selects an implementation of the same function": """
            dense_seq_output fused_bias_fc fused_dropout_add_ln pad_vocab_size_multiple
            reorder_and_upcast_attn use_flash_attn use_xentropy
            """,
        "other values have no effect": "max_trained_positions parallel_block_tied_norm",
        "heads of other tasks use it": """
            summary_activation summary_first_dropout summary_proj_to_labels summary_type
            summary_use_proj
            """,
    }
)
"""Keys of the published configs that do not change the outputs."""
_PREFIX, _OLD_PREFIX = "nomic_bert.", "bert."
"""Prefixes of the names of tensors; the second is that of the code of the published configs."""
_OLD_HEAD = "NomicBertForPreTraining"
_WIDTH_MULTIPLE = 256
"""The code of the published configs rounds the width of feed-forward networks up to it."""


class NomicBert(EncoderImporter):
    """NomicBERT, with or without a head, or as a sentence encoder (Nussbaum et al. 2024)."""

    name = "nomic_bert"
    model_classes = (
        "NomicBertForMaskedLM",
        "NomicBertModel",
        "NomicBertForSequenceClassification",
        "NomicBertForTokenClassification",
    )
    activation_in_head = True
    inner: ClassVar[Mapping[str, Any]] = {"activation": "tanh"}
    embedding_key = "nomic_bert.embeddings.word_embeddings.weight"
    tied_weight_names = ("cls.predictions.decoder.weight",)
    copies: ClassVar[Mapping[str, str]] = {"cls.predictions.decoder.bias": "cls.predictions.bias"}
    template = masked_lm_template(
        transformer_template(
            attention={"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": False},
            feed_forward={"gated": True, "bias": False},
            norm={"embedding": True},
            position={"type": "rotary"},
        )
    )
    fields = (
        *bert_fields(hidden_act="silu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )
    required_values = (TIED,)
    used_keys = (*EncoderImporter.used_keys, "rope_parameters", "head_dim")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys({"rotary positions are not limited": "max_position_embeddings"}),
    }

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        if any(name.startswith(_PREFIX) for name in weights.metas):
            return super().extend_config(config, folder, weights)
        old_names = {_rename(name): name for name in weights.metas}
        renamed = TensorReader(
            {name: weights.metas[old] for name, old in old_names.items()},
            lambda name: weights.read(old_names[name]),
        )
        extended = super().extend_config(config, folder, renamed)
        return {**extended, "old_prefix": any(name != old for name, old in old_names.items())}

    def map(self, config: Config) -> Path | dict[str, Any]:
        path = super().map(config)
        if not config.get("old_prefix"):
            return path
        assert isinstance(path, Path)
        text = path.read_text(encoding="utf-8").replace(_PREFIX, _OLD_PREFIX)
        content: dict[str, Any] = yaml.safe_load(text)
        if self._head_of(config) == "masked-lm" and "sentence" not in config:
            rename = content["rename"]
            dense = rename.pop("transform.{w:weight|bias}")
            rename["transform.weight"] = dense.replace("{w}", "weight")
            del rename["bias"]  # the head of that code has no biases
            content["fill"] = {"transform.bias": "zeros", "bias": "zeros"}
        return content

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(_to_new_names(config) if "n_embd" in config else config)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        rope = get_mapping(config, "rope_parameters")
        if rope.get("rope_type", "default") != "default":
            raise config_error("rope_parameters", rope, "scaled rotary angles are not supported")
        theta = get_value(rope, "rope_theta", float, _THETA)
        encoder, width = spec["model"]["encoder"], spec["model"]["source"]["dim"]
        encoder["position"]["theta"] = theta
        attention = encoder["attention"]
        head_dim = get_value(config, "head_dim", int, None)
        attention["head_dim"] = head_dim or width // attention["heads"]
        super().update_spec(spec, config)

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        return super().config(spec, _to_new_names(original) if "n_embd" in original else original)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        theta = get_path(spec, "model.encoder.position.theta")
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
        head_dim = get_path(spec, "model.encoder.attention.head_dim")
        config["head_dim"] = head_dim or config["hidden_size"] // config["num_attention_heads"]


def _rename(name: str) -> str:
    """Return the name of a tensor of the published code as transformers has it."""
    return _PREFIX + name.removeprefix(_OLD_PREFIX) if name.startswith(_OLD_PREFIX) else name


def _to_new_names(config: Config) -> dict[str, Any]:
    """Return a config of the published code with the names of transformers."""
    for key, supported in _OLD_VALUES.items():
        if key in config and config[key] not in supported:
            names = " or ".join(format_value(value) for value in supported)
            raise config_error(key, config[key], f"only {names} is supported")
    dropped = {*_OLD_NAMES, *_OLD_VALUES, *_OLD_IGNORED}
    result = {key: value for key, value in config.items() if key not in dropped}
    result |= {new: config[old] for old, new in _OLD_NAMES.items() if old in config}
    if result.get("architectures") == [_OLD_HEAD]:
        result["architectures"] = [NomicBert.model_classes[0]]
    inner = result.get("intermediate_size")
    if type(inner) is int:
        result["intermediate_size"] = -(-inner // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
    theta = result.pop("rope_theta", _THETA)
    return {**result, "hidden_act": "silu", "rope_parameters": {"rope_theta": theta}}
