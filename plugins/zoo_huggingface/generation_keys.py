"""Keys of ``generation_config.json`` that do not change the generated tokens, or are rejected."""

from typing import Any

from zoo_huggingface.config_keys import ignored_keys

GENERATION_FILE = "generation_config.json"

IGNORED_KEYS = ignored_keys(
    {
        "it identifies the file": "_from_model_config transformers_version",
        "it selects an implementation of the same search": """
            assistant_confidence_threshold assistant_early_exit assistant_ensemble_weight
            assistant_lookbehind cache_config cache_implementation compile_config
            continuous_batching_config disable_compile is_assistant low_memory max_cache_len
            max_matching_ngram_size num_assistant_tokens num_assistant_tokens_schedule
            prefill_chunk_size prompt_lookup_num_tokens speculation_type target_lookbehind use_cache
            use_mtp
            """,
        "it selects which outputs are returned": """
            output_attentions output_hidden_states output_logits output_scores
            return_dict_in_generate
            """,
        "it pads the outputs of transformers": "pad_token_id",
        "only inputs without a prompt use it": "bos_token_id",
        "logits of the zoo are finite": "remove_invalid_values",
    }
)
"""Keys that do not change the generated tokens, with the reason."""

LIMITS = {"max_length": 20, "max_new_tokens": None, "max_time": None}
"""Limits, which are arguments of the call in the zoo, and their defaults."""

REQUIRED_VALUES: dict[str, tuple[Any, ...]] = {
    "begin_suppress_tokens": (None, []),
    "constraints": (None,),
    "diversity_penalty": (None, 0.0),
    "dola_layers": (None,),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1.0),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None, []),
    "forced_bos_token_id": (None,),
    "guidance_scale": (None, 1.0),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "num_beam_groups": (None, 1),
    "penalty_alpha": (None, 0.0),
    "sequence_bias": (None, {}, []),
    "stop_strings": (None, []),
    "token_healing": (None, False),
    "watermarking_config": (None,),
}
"""Keys that change the generated tokens and that the zoo does not support, and their defaults."""
