"""Small models of transformers, by family."""

from hf_models import causal, encoders, experts, seq2seq, speech, vision
from hf_models.tokens import EOS as EOS, PAD as PAD

_FAMILIES = (encoders, causal, experts, seq2seq, vision, speech)
MODELS = {name: model for family in _FAMILIES for name, model in family.MODELS.items()}
"""Class and config by name; a name starts with the importer's name."""
VALUES = {name: values for family in _FAMILIES for name, values in family.VALUES.items()}
"""Other values of config keys, by importer."""
ENCODERS = {config.model_type for _, config in encoders.MODELS.values()}
"""Importers of text encoders."""
SAME_CODE = (
    *("mistral", "qwen2", "qwen3", "olmo2", "phi3", "starcoder2", "smollm3", "gemma", "phi"),
    *("mixtral", "qwen2_moe", "qwen3_moe"),
    *("distilbert", "xlm-roberta", "camembert"),
    *("mbart", "pegasus", "m2m_100", "mt5", "hubert", "wavlm", "siglip", "deit"),
    *("clip_text_model", "clip_vision_model", "siglip_text_model", "siglip_vision_model"),
)
"""Architectures whose importers are those of others with other values. In each run, random and
fuzzed configs compare them with transformers; of the others, each key is compared."""
