"""Image models of transformers with small random weights."""

import transformers as hf

MODELS = {
    "vit": (
        hf.ViTForImageClassification,
        hf.ViTConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            image_size=8, patch_size=4, num_labels=3,
        ),
    ),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
