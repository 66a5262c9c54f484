"""Causal language models of transformers with small random weights."""

import transformers as hf

from hf_models.tokens import EOS, PAD

LLAMA = {
    "vocab_size": 31, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": EOS,
}  # fmt: skip
_GPT2 = {
    "vocab_size": 31, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2,
    "bos_token_id": EOS, "eos_token_id": EOS,
}  # fmt: skip
_OPT = {
    "vocab_size": 31, "hidden_size": 8, "ffn_dim": 12, "num_hidden_layers": 2,
    "num_attention_heads": 2, "max_position_embeddings": 24, "bos_token_id": EOS,
    "eos_token_id": EOS, "pad_token_id": PAD,
}  # fmt: skip

MODELS = {
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(**_GPT2)),
    "gpt2-untied": (
        hf.GPT2LMHeadModel,
        hf.GPT2Config(**_GPT2, n_inner=20, tie_word_embeddings=False, activation_function="relu"),
    ),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA)),
    "llama-biased": (
        hf.LlamaForCausalLM,
        hf.LlamaConfig(
            **LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0}, pad_token_id=PAD,
        ),
    ),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(**LLAMA, sliding_window=None)),
    "mistral-one-head": (
        hf.MistralForCausalLM,
        hf.MistralConfig(
            **LLAMA | {"num_attention_heads": 1, "num_key_value_heads": 1}, sliding_window=None
        ),
    ),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(**LLAMA)),
    "llama-3": (
        hf.LlamaForCausalLM,
        hf.LlamaConfig(
            **LLAMA, tie_word_embeddings=True,
            rope_parameters={
                "rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
    ),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config(**LLAMA, head_dim=6)),
    "olmo2": (hf.Olmo2ForCausalLM, hf.Olmo2Config(**LLAMA, pad_token_id=PAD)),
    "phi3": (hf.Phi3ForCausalLM, hf.Phi3Config(**LLAMA, pad_token_id=PAD)),
    "opt": (hf.OPTForCausalLM, hf.OPTConfig(**_OPT)),
    "opt-projected": (
        hf.OPTForCausalLM,
        hf.OPTConfig(**_OPT, do_layer_norm_before=False, word_embed_proj_dim=6),
    ),
    "bloom": (
        hf.BloomForCausalLM,
        hf.BloomConfig(
            vocab_size=31, hidden_size=12, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=EOS,
            pad_token_id=PAD,
        ),
    ),
    "mistral-window": (hf.MistralForCausalLM, hf.MistralConfig(**LLAMA, sliding_window=3)),
    "qwen2-window": (
        hf.Qwen2ForCausalLM,
        hf.Qwen2Config(
            **LLAMA | {"num_hidden_layers": 3}, use_sliding_window=True, sliding_window=3,
            max_window_layers=1,
        ),
    ),
    "smollm3": (
        hf.SmolLM3ForCausalLM,
        hf.SmolLM3Config(
            **LLAMA | {"num_hidden_layers": 3}, pad_token_id=PAD, no_rope_layers=[1, 0, 1]
        ),
    ),
    "smollm3-window": (
        hf.SmolLM3ForCausalLM,
        hf.SmolLM3Config(
            **LLAMA | {"num_hidden_layers": 3}, pad_token_id=PAD, no_rope_layer_interval=2,
            use_sliding_window=True, sliding_window=3,
        ),
    ),
    "starcoder2": (hf.Starcoder2ForCausalLM, hf.Starcoder2Config(**LLAMA, sliding_window=3)),
    "gpt_neo": (
        hf.GPTNeoForCausalLM,
        hf.GPTNeoConfig(
            vocab_size=31, hidden_size=8, num_layers=2, num_heads=2, max_position_embeddings=24,
            window_size=3, attention_types=[[["global", "local"], 1]], bos_token_id=EOS,
            eos_token_id=EOS,
        ),
    ),
    "gpt_neox": (
        hf.GPTNeoXForCausalLM,
        hf.GPTNeoXConfig(
            vocab_size=31, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
            num_attention_heads=2, bos_token_id=1, eos_token_id=EOS,
        ),
    ),
    "gptj": (
        hf.GPTJForCausalLM,
        hf.GPTJConfig(
            vocab_size=31, n_embd=16, n_layer=2, n_head=2, n_positions=32, rotary_dim=4,
            bos_token_id=1, eos_token_id=EOS,
        ),
    ),
    "phi": (hf.PhiForCausalLM, hf.PhiConfig(**LLAMA | {"num_attention_heads": 2})),
    "falcon": (
        hf.FalconForCausalLM,
        hf.FalconConfig(
            vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            bos_token_id=1, eos_token_id=EOS,
        ),
    ),
    "falcon-new": (
        hf.FalconForCausalLM,
        hf.FalconConfig(
            vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_kv_heads=2, new_decoder_architecture=True, bias=True, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=EOS,
        ),
    ),
    "gemma": (hf.GemmaForCausalLM, hf.GemmaConfig(**LLAMA, head_dim=6, pad_token_id=PAD)),
    "gemma2": (
        hf.Gemma2ForCausalLM,
        hf.Gemma2Config(
            **LLAMA, head_dim=6, pad_token_id=PAD, sliding_window=3, query_pre_attn_scalar=9,
            attn_logit_softcapping=2.0, final_logit_softcapping=5.0,
        ),
    ),
    "gemma3_text": (
        hf.Gemma3ForCausalLM,
        hf.Gemma3TextConfig(
            **LLAMA | {"num_hidden_layers": 3}, head_dim=6, pad_token_id=PAD, sliding_window=3,
            query_pre_attn_scalar=9, sliding_window_pattern=2, final_logit_softcapping=5.0,
        ),
    ),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""
_BARE = {
    "llama-3": hf.LlamaModel,
    "mistral-window": hf.MistralModel,
    "qwen2": hf.Qwen2Model,
    "qwen3": hf.Qwen3Model,
    "gemma3_text": hf.Gemma3TextModel,
}
MODELS |= {f"{name}-features": (cls, MODELS[name][1]) for name, cls in _BARE.items()}
MODELS["gemma3_text-both-sides"] = (
    hf.Gemma3TextModel,
    hf.Gemma3TextConfig(
        **LLAMA, head_dim=6, pad_token_id=PAD, sliding_window=4, query_pre_attn_scalar=9,
        sliding_window_pattern=2, use_bidirectional_attention=True,
    ),
)  # fmt: skip

_ROPES = [
    {"rope_type": "default", "rope_theta": 99.0},
    {"rope_type": "linear", "rope_theta": 99.0, "factor": 2.0},
    {
        "rope_type": "llama3",
        "rope_theta": 99.0,
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
    {
        "rope_type": "yarn",
        "rope_theta": 99.0,
        "factor": 4.0,
        "beta_fast": 2,
        "original_max_position_embeddings": 32,
    },
    {
        "rope_type": "yarn",
        "rope_theta": 99.0,
        "factor": 4.0,
        "truncate": False,
        "mscale": 0.7,
        "mscale_all_dim": 1.1,
        "original_max_position_embeddings": 32,
    },
    {
        "rope_type": "longrope",
        "rope_theta": 99.0,
        "short_factor": [1.0, 2.0],
        "long_factor": [1.5, 4.0],
        "original_max_position_embeddings": 4,
    },
    {"rope_type": "dynamic", "rope_theta": 99.0, "factor": 2.0},
]
_SCALINGS = [{**rope, "type": rope["rope_type"]} for rope in _ROPES]
for rope in _SCALINGS:  # as transformers 4 writes them
    del rope["rope_type"], rope["rope_theta"]
_PARTIAL = [
    {**rope, "partial_rotary_factor": 0.5 + 0.5 * (index % 2)} for index, rope in enumerate(_ROPES)
]
ROPE_VALUES = {"rope_parameters": _ROPES, "rope_scaling": _SCALINGS[1:]}

VALUES = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "olmo2"), ROPE_VALUES),
    "qwen3": ROPE_VALUES | {"head_dim": [4]},
    "phi3": {
        "rope_parameters": [
            _ROPES[0], {**_ROPES[0], "partial_rotary_factor": 0.5}, _ROPES[5], _ROPES[1],
        ],
        "original_max_position_embeddings": [2, 12], "max_position_embeddings": [64],
    },
    "smollm3": ROPE_VALUES | {
        "no_rope_layers": [[1, 1, 0], [0, 0, 0], [1, 1, 1]], "num_hidden_layers": [2],
    },
    "starcoder2": ROPE_VALUES | {"sliding_window": [2, 5]},
    "gpt_neo": {
        "attention_types": [[[["local"], 2]], [[["global"], 1], [["local"], 1]]],
        "attention_layers": [["local", "local"]], "window_size": [1, 2, 5], "num_layers": [4],
    },
    "gpt_neox": {
        "rope_parameters": _PARTIAL,
        "rotary_pct": [0.5], "rotary_emb_base": [99],
    },
    "gptj": {"rotary_dim": [2, 8, 16], "n_inner": [12]},
    "phi": {
        "rope_parameters": _PARTIAL,
        "rope_theta": [99.0], "num_key_value_heads": [1],
    },
    "falcon": ROPE_VALUES | {
        "num_kv_heads": [2, 1], "num_ln_in_parallel_attn": [1, 2], "activation": ["relu"],
        "new_decoder_architecture": [True], "ffn_hidden_size": [12],
    },
    "gemma": ROPE_VALUES | {"head_dim": [4]},
    "gemma2": ROPE_VALUES | {
        "head_dim": [4], "hidden_activation": ["relu", "gelu", "silu"], "sliding_window": [2, 5],
        "query_pre_attn_scalar": [4, 6], "attn_logit_softcapping": [None, 1.0],
        "final_logit_softcapping": [None, 1.0],
        "layer_types": [["full_attention", "sliding_attention"], ["full_attention"] * 2],
    },
    "gemma3_text": {
        "rope_parameters": [
            {"full_attention": full, "sliding_attention": sliding}
            for full, sliding in zip(_ROPES, (*_ROPES[1:3], *_ROPES[:1] * 5), strict=True)
        ],
        "rope_scaling": [
            {"rope_type": "linear", "factor": 2.0}, {"type": "linear", "factor": 2.0},
        ],
        "head_dim": [4], "hidden_activation": ["relu", "gelu", "silu"], "sliding_window": [2, 5],
        "query_pre_attn_scalar": [4, 6], "final_logit_softcapping": [None, 1.0],
        "attn_logit_softcapping": [1.0], "num_hidden_layers": [8],
        "layer_types": [
            ["full_attention", "sliding_attention", "sliding_attention"], ["full_attention"] * 3,
            ["sliding_attention"] * 3,
        ],
    },
    "opt": {"word_embed_proj_dim": [6], "hidden_size": [12]},
    "bloom": {"n_head": [2, 6], "hidden_size": [24]},
}  # fmt: skip
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
