"""What a plugin imports to support another architecture: docs/new-architecture.md follows one."""

from zoo_huggingface.architecture import Architecture as Architecture, Config as Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture as CausalLMArchitecture
from zoo_huggingface.config_fields import (
    ConfigField as ConfigField,
    RequiredValue as RequiredValue,
    config_error as config_error,
    get_path as get_path,
    get_value as get_value,
    set_path as set_path,
)
from zoo_huggingface.config_keys import ignored_keys as ignored_keys
from zoo_huggingface.templates import (
    activation_field as activation_field,
    language_model_template as language_model_template,
    masked_lm_template as masked_lm_template,
    seq2seq_template as seq2seq_template,
    transformer_template as transformer_template,
)
