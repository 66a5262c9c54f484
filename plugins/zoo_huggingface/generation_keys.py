"""Keys of ``generation_config.json``: values of keys, and keys that are ignored or rejected."""

from collections.abc import Mapping
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import config_error, get_value
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
    }
)
"""Keys that do not change the generated tokens, with the reason."""

LIMITS = {"max_length": 20, "max_new_tokens": None, "max_time": None}
"""Limits, which are arguments of the call in the zoo, and their defaults."""

REQUIRED_VALUES: dict[str, tuple[Any, ...]] = {
    "constraints": (None,),
    "diversity_penalty": (None, 0.0),
    "dola_layers": (None,),
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1.0),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None, []),
    "guidance_scale": (None, 1.0),
    "num_beam_groups": (None, 1),
    "penalty_alpha": (None, 0.0),
    "sequence_bias": (None, {}, []),
    "stop_strings": (None, []),
    "token_healing": (None, False),
    "watermarking_config": (None,),
}
"""Keys that change the generated tokens and that the zoo does not support, and their defaults."""


def get_generation_value(
    generation: Mapping[str, Any], key: str, value_type: type, default: Any
) -> Any:
    """Return a value; null means the default."""
    given = {k: v for k, v in generation.items() if v is not None}
    return get_value(given, key, value_type, default, file=GENERATION_FILE)


def generation_error(key: str, value: Any, reason: str) -> ZooError:
    """Return the error for an unsupported value."""
    hint = f'--ignore {key}, or ignore=["{key}"] in Python, imports the model without it'
    return config_error(key, value, f"{reason}; {hint}", GENERATION_FILE)
