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
