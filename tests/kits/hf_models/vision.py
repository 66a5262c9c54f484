"""Image models of transformers with small random weights."""

import random

import transformers as hf

SMALL = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
    "image_size": 8, "patch_size": 4,
}  # fmt: skip
DINO = {key: value for key, value in SMALL.items() if key != "intermediate_size"} | {
    "mlp_ratio": 2, "layerscale_value": 0.7, "use_mask_token": False,
}  # fmt: skip
TEXT = {key: value for key, value in SMALL.items() if key not in ("image_size", "patch_size")} | {
    "vocab_size": 31, "max_position_embeddings": 10, "eos_token_id": 3,
}  # fmt: skip
SIGLIP_TEXT = TEXT | {"max_position_embeddings": 7, "projection_size": 8}
OCR = {
    "vocab_size": 31, "d_model": 12, "decoder_layers": 2, "decoder_attention_heads": 2,
    "decoder_ffn_dim": 10, "max_position_embeddings": 20, "cross_attention_hidden_size": 8,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3, "model_type": "trocr",
}  # fmt: skip
GPT2 = {
    "vocab_size": 31, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2,
    "eos_token_id": 2, "model_type": "gpt2", "add_cross_attention": True,
}  # fmt: skip

CAPTION = {
    "vocab_size": 31, "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 2,
    "num_attention_heads": 2, "max_position_embeddings": 20, "bos_token_id": 3,
    "sep_token_id": 2, "eos_token_id": 4, "pad_token_id": 0,
}  # fmt: skip


def image_to_text(encoder, decoder):
    """Return the config of an encoder and a decoder."""
    return hf.VisionEncoderDecoderConfig(
        encoder={**SMALL, "model_type": encoder}, decoder=dict(decoder), decoder_start_token_id=3,
        eos_token_id=2, pad_token_id=1,
    )  # fmt: skip


MODELS = {
    "vit": (hf.ViTForImageClassification, hf.ViTConfig(**SMALL, num_labels=3)),
    "deit": (hf.DeiTForImageClassification, hf.DeiTConfig(**SMALL, num_labels=3)),
    "deit-distilled": (
        hf.DeiTForImageClassificationWithTeacher,
        hf.DeiTConfig(**SMALL, num_labels=3),
    ),
    "vit-features": (hf.ViTModel, hf.ViTConfig(**SMALL)),
    "deit-features": (hf.DeiTModel, hf.DeiTConfig(**SMALL)),
    "dinov2": (hf.Dinov2ForImageClassification, hf.Dinov2Config(**DINO, num_labels=3)),
    "beit": (
        hf.BeitForImageClassification,
        hf.BeitConfig(**SMALL, num_labels=3, use_relative_position_bias=True),
    ),
    "beit-features": (
        hf.BeitModel,
        hf.BeitConfig(
            **SMALL, use_shared_relative_position_bias=True, use_absolute_position_embeddings=True
        ),
    ),
    "beit-features-first": (
        hf.BeitModel,
        hf.BeitConfig(**SMALL, use_mean_pooling=False, layer_scale_init_value=0.0),
    ),
    "clip": (
        hf.CLIPModel,
        hf.CLIPConfig(text_config=TEXT, vision_config=SMALL, projection_dim=6),
    ),
    "siglip": (
        hf.SiglipModel,
        hf.SiglipConfig(text_config=SIGLIP_TEXT, vision_config=SMALL),
    ),
    "clip_text_model": (hf.CLIPTextModel, hf.CLIPTextConfig(**TEXT)),
    "clip_text_model-projected": (
        hf.CLIPTextModelWithProjection,
        hf.CLIPTextConfig(**TEXT, projection_dim=6),
    ),
    "clip_vision_model": (
        hf.CLIPVisionModelWithProjection,
        hf.CLIPVisionConfig(**SMALL, projection_dim=6),
    ),
    "clip_vision_model-bare": (hf.CLIPVisionModel, hf.CLIPVisionConfig(**SMALL)),
    "siglip_text_model": (hf.SiglipTextModel, hf.SiglipTextConfig(**SIGLIP_TEXT)),
    "siglip_vision_model": (hf.SiglipVisionModel, hf.SiglipVisionConfig(**SMALL)),
    "blip": (
        hf.BlipForConditionalGeneration,
        hf.BlipConfig(text_config=CAPTION, vision_config=SMALL),
    ),
    "vision-encoder-decoder": (hf.VisionEncoderDecoderModel, image_to_text("vit", OCR)),
    "vision-encoder-decoder-deit": (
        hf.VisionEncoderDecoderModel,
        image_to_text("deit", OCR | {"use_learned_position_embeddings": False}),
    ),
    "vision-encoder-decoder-gpt2": (hf.VisionEncoderDecoderModel, image_to_text("vit", GPT2)),
    "dinov2-features": (hf.Dinov2Model, hf.Dinov2Config(**DINO, use_swiglu_ffn=True)),
}
"""Class and config by name; a name starts with the importer's name, then a variant."""

TRANSFORMER = {
    "hidden_size": [16, 10], "intermediate_size": [20], "num_hidden_layers": [1, 3],
    "num_attention_heads": [1, 4], "layer_norm_eps": [0.3], "attention_dropout": [0.3],
    "hidden_act": ["gelu", "relu", "gelu_new", "tanh"], "unknown": [1],
}  # fmt: skip
TEXTS = TRANSFORMER | {"vocab_size": [40], "max_position_embeddings": [7], "is_decoder": [True]}
IMAGES = TRANSFORMER | {"image_size": [12, 9], "patch_size": [2], "num_channels": [1]}


def part_values(small, values):
    """Return configs of a part: each value alone, and random combinations of several."""
    single = [{**small, key: value} for key, choices in values.items() for value in choices]
    generator = random.Random(0)
    combined = [
        {
            **small,
            **{key: generator.choice(values[key]) for key in generator.sample(list(values), 3)},
        }
        for _ in range(12)
    ]
    return single + combined


ENCODER = {key: values for key, values in IMAGES.items() if key != "attention_dropout"} | {
    "hidden_size": [10], "qkv_bias": [False], "model_type": ["deit", "swin"],
    "hidden_dropout_prob": [0.3], "attention_probs_dropout_prob": [0.3], "pooler_output_size": [6],
}  # fmt: skip
DECODER = {
    "vocab_size": [40], "d_model": [16], "decoder_layers": [1, 3], "decoder_ffn_dim": [14],
    "decoder_attention_heads": [1, 4], "activation_function": ["relu", "silu", "tanh"],
    "scale_embedding": [True], "layernorm_embedding": [False], "tie_word_embeddings": [False],
    "use_learned_position_embeddings": [False], "max_position_embeddings": [33],
    "cross_attention_hidden_size": [6, None], "pad_token_id": [0, 3], "unknown": [1],
    "model_type": ["bert"],
}  # fmt: skip
VALUES = {
    "vision-encoder-decoder": {
        "encoder": part_values(SMALL | {"model_type": "vit"}, ENCODER),
        "decoder": [
            *part_values(OCR, DECODER),
            *part_values(
                GPT2,
                {
                    "n_layer": [1],
                    "n_head": [1, 4],
                    "n_inner": [14],
                    "n_positions": [30],
                    "activation_function": ["relu", "gelu"],
                    "layer_norm_epsilon": [0.3],
                    "add_cross_attention": [False],
                    "scale_attn_weights": [False],
                    "n_embd": [8],
                    "tie_word_embeddings": [False],
                    "vocab_size": [40],
                    "pad_token_id": [2, 5],
                },
            ),
        ],
        "decoder_start_token_id": [4],
    },
    "blip": {
        "text_config": part_values(
            CAPTION,
            {
                "vocab_size": [40],
                "hidden_size": [16],
                "intermediate_size": [14],
                "num_hidden_layers": [1, 3],
                "num_attention_heads": [1, 4],
                "max_position_embeddings": [33],
                "hidden_act": ["relu", "gelu_new", "tanh"],
                "layer_norm_eps": [0.3],
                "bos_token_id": [5],
                "sep_token_id": [6],
                "pad_token_id": [1, 2],
                "tie_word_embeddings": [False],
                "is_decoder": [False],
                "hidden_dropout_prob": [0.3],
                "encoder_hidden_size": [99],
                "unknown": [1],
            },
        ),
        "vision_config": part_values(SMALL, IMAGES),
    },
    "clip_text_model": TRANSFORMER | {"eos_token_id": [2, 5], "max_position_embeddings": [9]},
    "clip_vision_model": TRANSFORMER,
    "siglip_text_model": TRANSFORMER | {"projection_size": [6], "max_position_embeddings": [9]},
    "siglip_vision_model": TRANSFORMER | {"vision_use_head": [False]},
    "clip": {
        "text_config": part_values(TEXT, TEXTS | {"eos_token_id": [2, 5, 99]}),
        "vision_config": part_values(SMALL, IMAGES),
        "projection_dim": [4],
    },
    "siglip": {
        "text_config": part_values(
            SIGLIP_TEXT, TEXTS | {"projection_size": [6], "max_position_embeddings": [9]}
        ),
        "vision_config": part_values(SMALL, IMAGES | {"vision_use_head": [False]}),
    },
}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
