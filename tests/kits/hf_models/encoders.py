"""Text encoders of transformers with small random weights."""

import transformers as hf

_BERT = {
    "vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12,
}  # fmt: skip

MODELS = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig(**_BERT, max_position_embeddings=16)),
    "roberta": (
        hf.RobertaForMaskedLM,
        hf.RobertaConfig(**_BERT, max_position_embeddings=18, type_vocab_size=1),
    ),
    "distilbert": (
        hf.DistilBertForMaskedLM,
        hf.DistilBertConfig(
            vocab_size=31, dim=8, n_layers=2, n_heads=1, hidden_dim=12, max_position_embeddings=16
        ),
    ),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
