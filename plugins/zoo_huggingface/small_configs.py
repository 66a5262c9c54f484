"""Configs of small models, for the laws of the importers."""

from collections.abc import Mapping
from typing import Any

_BERT = {
    "vocab_size": 31,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 18,
    "pad_token_id": 0,
    "hidden_act": "gelu",
}
_LLAMA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}

_CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "bert": {**_BERT, "type_vocab_size": 2},
    "roberta": {**_BERT, "type_vocab_size": 1, "pad_token_id": 1},
    "distilbert": {
        "vocab_size": 31,
        "dim": 8,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 12,
        "max_position_embeddings": 16,
    },
    "gpt2": {
        "vocab_size": 31,
        "n_positions": 24,
        "n_embd": 8,
        "n_layer": 2,
        "n_head": 2,
        "eos_token_id": 2,
        "layer_norm_epsilon": 1e-5,
    },
    "marian": {
        "vocab_size": 31,
        "d_model": 8,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 12,
        "decoder_ffn_dim": 10,
        "max_position_embeddings": 32,
        "pad_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
    },
    "t5": {
        "vocab_size": 31,
        "d_model": 8,
        "d_kv": 3,
        "d_ff": 12,
        "num_layers": 2,
        "num_heads": 2,
        "pad_token_id": 0,
        "decoder_start_token_id": 0,
        "eos_token_id": 2,
    },
    "llama": _LLAMA,
    "mistral": {**_LLAMA, "sliding_window": None},
    "qwen2": _LLAMA,
    "vit": {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "image_size": 8,
        "patch_size": 4,
        "num_labels": 3,
    },
    "wav2vec2": {
        "vocab_size": 11,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "conv_dim": [4, 4],
        "conv_kernel": [5, 3],
        "conv_stride": [3, 2],
        "num_feat_extract_layers": 2,
        "num_conv_pos_embeddings": 4,
        "num_conv_pos_embedding_groups": 2,
        "pad_token_id": 3,
    },
}


def small_config(model_type: str, architecture: str) -> Mapping[str, Any] | None:
    """Return the config of a small model with this class, or None for an unknown model type."""
    if model_type not in _CONFIGS:
        return None
    return {"model_type": model_type, "architectures": [architecture], **_CONFIGS[model_type]}
