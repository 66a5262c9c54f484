"""Config switches of transformers: other values of each key, and the comparison of logits."""

import copy
from functools import cache

import torch
from hf_model_kit import compare_logits, randomize
from hf_models import MODELS, VALUES as OWN_VALUES
from huggingface_hub.errors import StrictDataclassError

import zoo
from zoo.registry.component_registry import default_registry
from zoo_exchange.import_plan import plan_import
from zoo_huggingface.config_keys import COMMON_IGNORED_KEYS

ARCHITECTURES = [name for name, (_, config) in MODELS.items() if name == config.model_type]
SIZES = {"hidden_size", "d_model", "n_embd", "dim"}
NO_SWITCHES = {
    "architectures", "model_type", "transformers_version", "_name_or_path", "dtype",
    "output_attentions", "return_dict",
}  # fmt: skip
VALUES = {
    "hidden_act": ["relu", "gelu_new", "quick_gelu", "gelu_fast"],
    "activation": ["relu"],
    "activation_function": ["relu", "silu", "quick_gelu"],
    "feed_forward_proj": ["gated-gelu", "gated-silu", "gelu"],
    "dense_act_fn": ["gelu", "gelu_new", "tanh"],
    "feat_extract_activation": ["relu"],
    "feat_extract_norm": ["layer"],
    "rope_parameters": [
        {"rope_type": "default", "rope_theta": 99.0},
        {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0},
    ],
    "layer_types": [["sliding_attention", "full_attention"]],
    "sliding_window": [2, 4096],
    "conv_dim": [[4, 6], [6, 6]],
    "conv_kernel": [[4, 4]],
    "conv_stride": [[2, 2]],
    "summary_type": ["mean"],
    "ctc_loss_reduction": ["mean"],
    "problem_type": ["regression"],
    "pooler_act": ["relu"],
    "head_dim": [6],
    "num_key_value_heads": [1, 4],
    "num_attention_heads": [2],
    "n_head": [4],
    "n_heads": [2],
    "num_heads": [1],
    "encoder_attention_heads": [1],
    "decoder_attention_heads": [1],
    "adapter_attn_dim": [4],
    "pad_token_id": [4],
    "decoder_start_token_id": [4],
    "classifier_dropout": [0.5],
    "n_inner": [20],
    "image_size": [12],
    "patch_size": [2],
    "is_causal": [False],
    "per_layer_config": [{"0": {"intermediate_size": 14}}],
    "partial_rotary_factor": [0.5],
    "rope_theta": [99.0],
    "rope_scaling": [{"type": "linear", "factor": 2.0}],
    "attention_bias": [True],
    "mlp_bias": [True],
    "use_sliding_window": [True],
    "tie_word_embeddings": [False, True],
    "position_embedding_type": ["relative_key"],
    "attention_chunk_size": [2],
    "embedding_multiplier": [2.0],
    "normalize_before": [True],
    "num_codevector_groups": [4],
    "num_conv_pos_embedding_groups": [4],
}
"""Values of keys whose type does not determine them."""
EXTRA_KEYS = [
    "is_causal", "per_layer_config", "partial_rotary_factor", "rope_theta", "rope_scaling",
    "attention_bias", "mlp_bias", "head_dim", "sliding_window", "layer_types", "is_decoder",
    "use_sliding_window", "tie_word_embeddings", "position_embedding_type", "dense_act_fn",
    "attention_chunk_size", "embedding_multiplier", "normalize_before", "is_gated_act",
]  # fmt: skip
"""Keys that are not in every config class; code of transformers reads some of them anyway."""


DERIVED = {
    "feed_forward_proj": ("dense_act_fn", "is_gated_act"),
    "num_hidden_layers": ("layer_types",),
    "attention_types": ("attention_layers",),
}
"""Keys that transformers computes from another."""
IMPORTERS = {importer.name: importer for importer in default_registry().importers}


def ignored(importer):
    return {**COMMON_IGNORED_KEYS, **importer.ignored_keys}


def rejection(name, key, value):
    """Return the message of the error that a changed config raises, or None."""
    cls, config = MODELS[name]
    config = config.to_dict() | {key: value, "architectures": [cls.__name__]}
    config = {k: v for k, v in config.items() if k not in DERIVED.get(key, ())}
    if key == "feed_forward_proj":
        config |= {"dense_act_fn": None, "is_gated_act": value.startswith("gated-")}
    try:
        IMPORTERS[name].spec(config)
    except zoo.ZooError as error:
        return str(error)
    return None


@cache
def accepted_switches(name):
    """Return the switches that the importer accepts alone and that may change the outputs."""
    known = {*MODELS[name][1].to_dict(), *OWN_VALUES.get(name, {})} - ignored(
        IMPORTERS[name]
    ).keys()
    return [
        (key, value)
        for key, value in switches(name)
        if key in known and rejection(name, key, value) is None
    ]


def switches(name):
    """Return pairs of a key and a value other than that of the small model."""
    config = MODELS[name][1].to_dict()
    own = OWN_VALUES.get(name, {})
    pairs = []
    for key in dict.fromkeys([*config, *EXTRA_KEYS, *own]):
        if key in NO_SWITCHES:
            continue
        values = own.get(key) or VALUES.get(key) or _other_values(key, config.get(key))
        pairs += [(key, value) for value in values if value != config.get(key)]
    return pairs


def _other_values(key, value):
    if isinstance(value, bool) or key.startswith(("is_", "use_", "add_")):
        return [not value]
    if isinstance(value, int):
        return [value * 2 if key in SIZES or value > 3 else value + 1]
    if isinstance(value, float):
        return [0.3]
    return []


def build_switched(name, changes):
    """Return the model with changed keys, or None if transformers does not accept them."""
    cls, config = MODELS[name]
    given = {k: v for k, v in config.to_dict().items() if k not in NO_SWITCHES}
    dropped = [other for key in changes for other in DERIVED.get(key, ())]
    given = {k: v for k, v in given.items() if k not in dropped}
    try:
        torch.manual_seed(0)
        return randomize(name, cls(type(config)(**copy.deepcopy({**given, **changes}))))
    except (ValueError, TypeError, RuntimeError, KeyError, StrictDataclassError):
        return None


def import_switched(name, theirs, folder):
    """Return the largest difference of logits after an import that writes no file."""
    theirs.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    ours = plan_import(folder).load().eval()
    actual, expected = compare_logits(name, ours, theirs)
    return (actual - expected).abs().max().item()


def compare_switched(name, pairs, folder):
    """Return pairs of changes that were imported together and the largest difference of logits.

    Changes that do not go together are compared in two halves; a change that transformers does not
    accept is left out.
    """
    changes = _join(name, pairs)
    theirs = None if changes is None else build_switched(name, changes)
    if theirs is not None:
        try:
            return [(pairs, import_switched(name, theirs, folder))]
        except zoo.ZooError:
            if len(pairs) == 1:
                raise
    middle = len(pairs) // 2
    halves = (pairs[:middle], pairs[middle:]) if middle else ()
    return [each for half in halves for each in compare_switched(name, half, folder)]


def _join(name, pairs):
    """Return changes as a dictionary; None if two of them are other values of the same key."""
    config = MODELS[name][1].to_dict()
    joined = {}
    for key, value in pairs:
        if key in joined:
            own, given = config.get(key), joined[key]
            if not isinstance(own, dict) or given.get("model_type") != value.get("model_type"):
                return None
            new = {k: v for k, v in value.items() if own.get(k) != v}
            if any(given[k] not in (own.get(k), v) for k, v in new.items() if k in given):
                return None
            value = given | new
        joined[key] = value
    return joined
