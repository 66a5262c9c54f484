"""Every key of a config is imported, does not change the logits, or is rejected by name."""

import json

import pytest
import torch
import transformers as hf
from hf_model_kit import compare_logits
from hf_models import MODELS, SAME_CODE
from hf_switch_kit import (
    ARCHITECTURES,
    IMPORTERS,
    build_switched,
    compare_switched,
    ignored,
    import_switched,
    rejection,
    switches,
)

from zoo_exchange.import_plan import plan_import
from zoo_huggingface.config_fields import REQUIRED
from zoo_huggingface.config_keys import OLDER_DEFAULTS, UNREAD_KEYS, UNREAD_VALUES, read_defaults

ATOL = 1e-4


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in SAME_CODE else ())
        for name in ARCHITECTURES
    ]
)
def name(request):
    return request.param


def unread(name):
    """Return harmless values of keys that the config class does not have, and the importer's."""
    known = {*IMPORTERS[name].known_keys, *read_defaults(name), *MODELS[name][1].to_dict()}
    values = {key: 0.5 if "drop" in key or "init" in key else "other" for key in UNREAD_KEYS}
    values |= {key: harmless[-1] for key, harmless in UNREAD_VALUES.items()}
    unread = {key: value for key, value in values.items() if key not in known}
    return unread | {key: value[0] for key, value in IMPORTERS[name].harmless_values.items()}


def test_ignored_keys_do_not_change_the_logits(name, tmp_path):
    changes = dict(pair for pair in switches(name) if pair[0] in ignored(IMPORTERS[name]))
    assert len(changes) >= 3
    changes |= unread(name)
    theirs = build_switched(name, changes)
    assert theirs is not None
    assert import_switched(name, theirs, tmp_path) < ATOL


def test_other_values_of_such_keys_are_rejected_by_name(name):
    for key in {**UNREAD_VALUES, **IMPORTERS[name].harmless_values}.keys() & unread(name).keys():
        message = rejection(name, key, "other")
        assert message is not None, key
        assert f"'{key}' is \"other\"; only " in message


@pytest.mark.parametrize("together", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_each_key_gives_the_same_logits_or_is_rejected_by_name(name, together, tmp_path):
    accepted, rejected, problems = [], 0, []
    for key, value in switches(name):
        if key in ignored(IMPORTERS[name]):
            continue
        message = rejection(name, key, value)
        if message is None:
            accepted.append((key, value))
        else:
            rejected += 1
            problems += [] if key in message else [f"{key}={value} is not named: {message}"]
    compared = [
        each
        for pairs in _split(accepted, together)
        for each in compare_switched(name, pairs, tmp_path)
    ]
    problems += [f"{changes} differ by {gap}" for changes, gap in compared if not gap < ATOL]
    assert not problems, "\n".join(problems)
    assert sum(len(changes) for changes, _ in compared) >= 8
    assert rejected >= 5


def _split(switches, size):
    """Yield parts of at most `size` switches; configs of different models do not go together."""
    models = {}
    for key, value in switches:
        model = value.get("model_type") if isinstance(value, dict) else None
        models.setdefault(model, []).append((key, value))
    for pairs in models.values():
        count = -(-len(pairs) // size)
        yield from (pairs[start::count] for start in range(count))


PUBLISHED = {
    "bert": {
        "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "output_past": True,
        "pooler_type": "first_token_transform", "position_embedding_type": "absolute",
        "gradient_checkpointing": False, "finetuning_task": "tnews", "pruned_heads": {},
    },
    "xlm-roberta": {"output_past": True, "position_embedding_type": "absolute"},
    "electra": {"summary_activation": "gelu", "embedding_size": 6, "gradient_checkpointing": False},
    "llama": {
        "is_llama_config": True, "rope_interleaved": False, "max_sequence_length": 2048,
        "use_flash_attn": True, "unk_token_id": 0, "is_decoder": True, "quantization_config": None,
        "pretraining_tp": 1, "rope_scaling": None, "unsloth_fixed": True,
    },
    "phi3": {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False},
    "gpt_neox": {"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0},
    "falcon": {"ff_factor": 4},
    "roberta": {
        "sentence_transformers": {
            "activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.1.0.dev0",
        },
        "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
        "num_labels": 1, "id2label": {"0": "LABEL_0"},
    },
    "opt": {"activation_dropout": 0.0, "prefix": "</s>", "output_projection": True},
    "bloom": {
        "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "n_embed": 12,
        "masked_softmax_fusion": True, "n_inner": None, "num_attention_heads": 3,
        "offset_alibi": 100, "skip_bias_add": True, "skip_bias_add_qkv": False, "unk_token_id": 0,
        "seq_length": 2048,
    },
    "gpt2": {"n_ctx": 24, "n_special": 0, "predict_special_tokens": True, "n_layer": 2},
    "distilbert": {"tie_weights_": True, "output_past": True, "hidden_size": 8},
    "marian": {
        "classif_dropout": 0.0, "extra_pos_embeddings": 53685, "num_hidden_layers": 2,
        "normalize_before": False, "static_position_embeddings": True, "num_beams": 4,
    },
    "wav2vec2": {"hidden_dropout_prob": 0.1, "no_mask_time_overlap": False},
    "qwen2": {"use_mrope": False, "sliding_window": 32768, "max_window_layers": 28},
    "mixtral": {"num_experts": 4, "router_aux_loss_coef": 0.02, "output_router_logits": True},
    "qwen2_moe": {"sliding_window": 32768, "max_window_layers": 21},
    "qwen3_moe": {"num_experts": 4, "max_window_layers": 48, "sliding_window": None},
    "gpt_oss": {
        "experts_per_token": 2, "initial_context_length": 4096, "hidden_act": "silu",
        "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "rope_type": "yarn",
            "original_max_position_embeddings": 4096, "truncate": False,
        },
        "rope_theta": 150000,
    },
    "vit": {"transformers.js_config": {"dtype": "q8"}, "torch_dtype": "float32"},
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_keys_of_published_configs_are_accepted(name):
    config = MODELS[name][1].to_dict() | {"architectures": None} | PUBLISHED[name]
    assert IMPORTERS[name].spec(config)["name"] == name


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"text_config": {"num_hidden_layers": 1}, "vision_config": {"hidden_act": "gelu"}},
        {"text_config": {"eos_token_id": 5, "layer_norm_eps": 0.3}},
    ],
    ids=["equal", "other-layers", "other-end"],
)
def test_the_older_configs_of_clip_are_merged_as_in_transformers(tmp_path, changes):
    config = MODELS["clip"][1]
    small = {
        part: getattr(config, part).to_diff_dict() for part in ("text_config", "vision_config")
    }
    older = {f"{part}_dict": {**small[part], **changes.get(part, {})} for part in small}
    torch.manual_seed(0)
    theirs = hf.CLIPModel(hf.CLIPConfig(**small, **older, projection_dim=6)).eval()
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    merged = json.loads(file.read_text())
    file.write_text(json.dumps({**merged, **small, **older}))

    ours = plan_import(tmp_path).load().eval()

    actual, expected = compare_logits("clip", ours, theirs)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_recorded_defaults_are_those_of_transformers(name):
    config = hf.CONFIG_MAPPING[name]().to_dict()
    recorded = {key: value for key, value in read_defaults(name).items() if key in config}
    known = {"_name_or_path", "model_type", "transformers_version"}
    assert {key: value for key, value in config.items() if key not in known} == recorded
    assert read_defaults(name).keys() - config.keys() <= OLDER_DEFAULTS.keys()


def test_defaults_of_fields_are_those_of_transformers(name):
    defaults = read_defaults(name)
    for field in IMPORTERS[name].fields:
        if field.default is not REQUIRED and field.key in defaults:
            assert field.default == defaults[field.key], field.key
    for required in IMPORTERS[name].required_values:
        assert required.value == defaults.get(required.key, required.value), required.key
