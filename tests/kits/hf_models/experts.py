"""Causal language models of transformers with experts and small random weights."""

import transformers as hf

from hf_models.causal import LLAMA, ROPE_VALUES
from hf_models.tokens import PAD

_EXPERTS = {**LLAMA, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "num_experts": 4}

MODELS = {
    "mixtral": (
        hf.MixtralForCausalLM,
        hf.MixtralConfig(**LLAMA, num_local_experts=4, num_experts_per_tok=2),
    ),
    "qwen2_moe": (
        hf.Qwen2MoeForCausalLM,
        hf.Qwen2MoeConfig(
            **_EXPERTS | {"num_hidden_layers": 3}, shared_expert_intermediate_size=12,
            mlp_only_layers=[1],
        ),
    ),
    "qwen2_moe-window": (
        hf.Qwen2MoeForCausalLM,
        hf.Qwen2MoeConfig(
            **_EXPERTS | {"num_hidden_layers": 4}, shared_expert_intermediate_size=12,
            decoder_sparse_step=2, use_sliding_window=True, sliding_window=3, max_window_layers=3,
            norm_topk_prob=True, qkv_bias=False, pad_token_id=PAD,
        ),
    ),
    "qwen3_moe": (hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig(**_EXPERTS, head_dim=6)),
    "gpt_oss": (
        hf.GptOssForCausalLM,
        hf.GptOssConfig(
            **LLAMA, head_dim=6, num_local_experts=4, num_experts_per_tok=2, sliding_window=3,
            swiglu_limit=0.5,
        ),
    ),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

_QWEN = ROPE_VALUES | {
    "decoder_sparse_step": [2, 5], "mlp_only_layers": [[], [0], [0, 1, 2]],
    "norm_topk_prob": [True], "num_experts_per_tok": [1, 3],
}  # fmt: skip
VALUES = {
    "mixtral": ROPE_VALUES | {"num_local_experts": [3, 5], "num_experts_per_tok": [1, 3]},
    "qwen2_moe": _QWEN | {"num_experts": [3, 5], "max_window_layers": [1, 2], "qkv_bias": [False]},
    "qwen3_moe": _QWEN | {"num_local_experts": [3, 5], "head_dim": [4]},
    "gpt_oss": {
        "rope_parameters": [ROPE_VALUES["rope_parameters"][index] for index in (0, 3, 4)],
        "rope_scaling": [ROPE_VALUES["rope_scaling"][2]],
        "num_local_experts": [3, 5], "num_experts_per_tok": [1, 3], "head_dim": [4],
        "sliding_window": [2, 5], "swiglu_limit": [0.1, 7.0], "swiglu_alpha": [1.0, 2.5],
        "attention_bias": [False],
        "layer_types": [["full_attention", "sliding_attention"], ["full_attention"] * 2],
    },
}  # fmt: skip
"""Other values of config keys, by importer."""
