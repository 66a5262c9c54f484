"""Accounting of config keys: each is used, ignored for a reason, or has its default value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from zoo_huggingface.config_fields import config_error, format_value

_CONFIGS = Path(__file__).parent / "configs"
"""One file per model type: defaults of its config class, and the config of a small model."""


def ignored_keys(groups: Mapping[str, str]) -> dict[str, str]:
    """Return the reason of each key, from reasons and their keys separated by spaces."""
    return {key: reason for reason, keys in groups.items() for key in keys.split()}


COMMON_IGNORED_KEYS = ignored_keys(
    {
        "it identifies the file or the model": """
            _commit_hash _name_or_path model_type name_or_path tokenizer_class transformers_version
            _from_model_config transformers.js_config unsloth_fixed unsloth_version
            """,
        "code in the folder is not executed": "auto_map custom_pipelines trust_remote_code",
        "weights keep the dtype of the file": "dtype torch_dtype",
        "it selects an implementation of the same function": """
            _attn_implementation _attn_implementation_autoset _flash_attn_2_enabled
            attn_implementation chunk_size_feed_forward experts_implementation
            gradient_checkpointing onnx_export pretraining_tp torchscript use_bfloat16 use_cache
            _experts_implementation
            """,
        "it selects which outputs are returned": """
            output_attentions output_hidden_states output_past return_dict use_return_dict
            """,
        "the head of this task is not imported": """
            _num_labels classif_dropout classifier_dropout finetuning_task id2label label2id
            num_labels problem_type
            """,
        "it affects training only": "keep_gradients tf_legacy_loss",
        "pipelines of transformers use it, models do not": "prefix task_specific_params",
        "tokenizers have it": "sep_token_id model_max_length",
    }
)
"""Keys of any config that do not change the outputs, with the reason."""

# Code of other libraries writes these keys, and earlier versions of transformers did.
UNREAD_KEYS = ignored_keys(
    {
        "it affects training only": """
            activation_dropout attention_dropout attention_probs_dropout_prob attn_dropout
            attn_pdrop classifier_dropout_prob drop_path_rate dropout dropout_rate emb_pdrop
            embd_pdrop embed_dropout embedding_dropout ffn_dropout hidden_dropout
            hidden_dropout_prob label_smoothing label_smoothing_factor layerdrop mlp_dropout
            neftune_noise_alpha resid_dropout resid_pdrop residual_dropout
            use_gradient_checkpointing
            """,
        "it affects initialisation only": """
            init_std initializer_cutoff_factor initializer_factor initializer_range
            """,
        "it selects an implementation of the same function": """
            attention_softmax_in_fp32 flash_attn reference_compile unsloth_tiled_mlp
            use_flash_attention use_flash_attention_2 use_flash_attn use_memory_efficient_attention
            xla_device
            """,
        "weights keep the dtype of the file": "bf16 fp16 fp32",
        "tokenizers have it": """
            bos_token cls_token_id eos_token mask_token_id max_seq_length pad_token tokenizer_name
            unk_token unk_token_id
            """,
        "it identifies the file or the model": "language processor_class",
        "sentence-transformers applies it to the outputs": """
            matryoshka_dimensions sbert_ce_default_activation_function sentence_transformers
            """,
        "heads of other tasks use it": """
            summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels
            summary_type summary_use_proj
            """,
    }
)
"""Keys that do not change the outputs if the config class does not have them, with the reason."""

UNREAD_VALUES: Mapping[str, tuple[Any, ...]] = {
    "adapters": ({}, {"adapters": {}, "config_map": {}, "fusion_config_map": {}, "fusions": {}}),
    "alibi": (False,),
    "attention_bias": (False,),
    "full_attn_mod": (1,),
    "interpolate_factor": (1,),
    "lm_head_bias": (False,),
    "logn_attention_scale": (False,),
    "logits_scaling": (1.0,),
    "mlp_bias": (False,),
    "num_nextn_predict_layers": (0,),
    "partial_rotary_factor": (1.0,),
    "qk_layernorm": (False,),
    "residual_multiplier": (1.0,),
    "use_dynamic_ntk": (False,),
    "use_logn_attn": (False,),
    "use_mrope": (False,),
    "use_mup": (False,),
    "use_qk_norm": (False,),
    "use_sliding_window": (False,),
}
"""Values that do not change the outputs, of keys that the config class does not have."""

ADDED_KEYS = (
    "preprocessor",
    "untied",
    "sentence",
    "sentence_length",
    "lowercase",
    "generation",
    "tokenizer_padding",
    "padding_ends",
    "has_tokenizer",
    "pooler",
    "logits_bias",
    "fused_experts",
    "old_prefix",
)
"""Keys that `extend_config` adds to a config."""
DROPPED_KEYS = (
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "dtype",
    "torch_dtype",
    *ADDED_KEYS,
)
"""Keys of the imported config that an export does not write."""

OLDER_DEFAULTS: Mapping[str, Any] = {
    "add_cross_attention": False,
    "cross_attention_hidden_size": None,
    "is_decoder": False,
    "pruned_heads": {},
    "tie_encoder_decoder": False,
}
"""Defaults of transformers 4 for keys that version 5 removed from some configs."""


def forbid_quantized(config: Mapping[str, Any]) -> None:
    """Raise ZooError if the weights are quantized."""
    for key in ("quantization_config", "quantization"):
        if config.get(key):
            raise config_error(
                key,
                config[key],
                "quantized weights are not supported; import a copy of the model with bfloat16 "
                "weights",
            )


def check_keys(
    name: str,
    config: Mapping[str, Any],
    known: Iterable[str],
    defaults: Mapping[str, Any],
    harmless: Mapping[str, tuple[Any, ...]],
) -> None:
    """Raise ZooError for a key that is not `known`, unless it cannot change the outputs.

    Args:
        name: the model type.
        config: the config.
        known: the keys that the importer uses, requires or ignores.
        defaults: those of the config class; see `read_defaults`.
        harmless: values of keys that do not change the outputs, in addition to the defaults.
    """
    accepted = set(known)
    for key, value in config.items():
        unread = key.rpartition(".")[2]  # of a part of the model
        if key in accepted or (key not in defaults and (unread in UNREAD_KEYS or value is None)):
            continue
        values = harmless.get(key, ())
        values += (defaults[key],) if key in defaults else UNREAD_VALUES.get(unread, ())
        if any(_equal(value, each) for each in values):
            continue
        if key in defaults:
            supported = format_value(defaults[key])
            raise config_error(
                key, value, f"only the default of transformers, {supported}, is supported"
            )
        if values:
            supported = " or ".join(map(format_value, values))
            raise config_error(key, value, f"only {supported} is supported")
        raise config_error(
            key,
            value,
            f"the importer '{name}' does not know this key; if it does not change the outputs, "
            f'import the model with --ignore {key}, or with ignore=["{key}"] in Python',
        )


def read_defaults(name: str) -> Mapping[str, Any]:
    """Return the recorded defaults of the config class of a model type."""
    return {**OLDER_DEFAULTS, **_read("common", "defaults"), **_read(name, "defaults")}


def read_small_config(name: str) -> Mapping[str, Any]:
    """Return the config of a small model of a model type, for the laws; empty if it has none."""
    return _read(name, "small")


def _read(name: str, part: str) -> Mapping[str, Any]:
    path = _CONFIGS / f"{name}.yaml"
    recorded = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    values: Mapping[str, Any] = recorded.get(part, {})
    return values


def _equal(value: Any, default: Any) -> bool:
    """Return whether two values are equal; true is not 1."""
    if isinstance(value, bool) or isinstance(default, bool):
        return value is default
    return bool(value == default)
