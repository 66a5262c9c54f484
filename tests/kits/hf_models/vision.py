"""Image models of transformers with small random weights."""

import transformers as hf

SMALL = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
    "image_size": 8, "patch_size": 4,
}  # fmt: skip
DINO = {key: value for key, value in SMALL.items() if key != "intermediate_size"} | {
    "mlp_ratio": 2, "layerscale_value": 0.7, "use_mask_token": False,
}  # fmt: skip
MODELS = {
    "vit": (hf.ViTForImageClassification, hf.ViTConfig(**SMALL, num_labels=3)),
    "deit": (hf.DeiTForImageClassification, hf.DeiTConfig(**SMALL, num_labels=3)),
    "deit-distilled": (
        hf.DeiTForImageClassificationWithTeacher,
        hf.DeiTConfig(**SMALL, num_labels=3),
    ),
    "dinov2": (hf.Dinov2ForImageClassification, hf.Dinov2Config(**DINO, num_labels=3)),
    "dinov2-features": (hf.Dinov2Model, hf.Dinov2Config(**DINO, use_swiglu_ffn=True)),
}
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
