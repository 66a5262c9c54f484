"""Causal language models of transformers with small random weights."""

import transformers as hf

from hf_models.tokens import EOS, PAD

_LLAMA = {
    "vocab_size": 31, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": EOS,
}  # fmt: skip
_GPT2 = {
    "vocab_size": 31, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2,
    "bos_token_id": EOS, "eos_token_id": EOS,
}  # fmt: skip

MODELS = {
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(**_GPT2)),
    "gpt2-untied": (
        hf.GPT2LMHeadModel,
        hf.GPT2Config(**_GPT2, n_inner=20, tie_word_embeddings=False, activation_function="relu"),
    ),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**_LLAMA)),
    "llama-biased": (
        hf.LlamaForCausalLM,
        hf.LlamaConfig(
            **_LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0}, pad_token_id=PAD,
        ),
    ),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(**_LLAMA, sliding_window=None)),
    "mistral-one-head": (
        hf.MistralForCausalLM,
        hf.MistralConfig(
            **_LLAMA | {"num_attention_heads": 1, "num_key_value_heads": 1}, sliding_window=None
        ),
    ),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(**_LLAMA)),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
