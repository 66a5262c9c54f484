"""Published configs of image models."""

VIT = {
    "architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
    "id2label": {str(i): f"name {i}" for i in range(1000)}, "image_size": 224,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
    "model_type": "vit", "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12,
    "patch_size": 16, "qkv_bias": True,
}  # fmt: skip
DEIT = {**VIT, "architectures": ["DeiTForImageClassification"], "model_type": "deit"}
DINOV2 = {
    "apply_layernorm": True,
    "architectures": ["Dinov2ForImageClassification"],
    "drop_path_rate": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": 384,
    "image_size": 518,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-06,
    "layerscale_value": 1.0,
    "mlp_ratio": 4,
    "model_type": "dinov2",
    "num_attention_heads": 6,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 14,
    "qkv_bias": True,
    "reshape_hidden_states": True,
    "use_swiglu_ffn": False,
    "use_mask_token": False,
}
CLIP = {
    "architectures": ["CLIPModel"],
    "initializer_factor": 1.0,
    "logit_scale_init_value": 2.6592,
    "model_type": "clip",
    "projection_dim": 512,
    "text_config": {
        "_name_or_path": "",
        "add_cross_attention": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "dropout": 0.0,
        "eos_token_id": 2,
        "hidden_act": "quick_gelu",
        "hidden_size": 512,
        "initializer_factor": 1.0,
        "initializer_range": 0.02,
        "intermediate_size": 2048,
        "is_decoder": False,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 77,
        "model_type": "clip_text_model",
        "num_attention_heads": 8,
        "num_beams": 1,
        "num_hidden_layers": 12,
        "pad_token_id": 1,
        "projection_dim": 512,
        "pruned_heads": {},
        "top_k": 50,
        "torchscript": False,
        "use_bfloat16": False,
        "vocab_size": 49408,
    },
    "vision_config": {
        "attention_dropout": 0.0,
        "dropout": 0.0,
        "hidden_act": "quick_gelu",
        "hidden_size": 768,
        "image_size": 224,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-05,
        "model_type": "clip_vision_model",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "patch_size": 32,
        "projection_dim": 512,
    },
}
SIGLIP = {
    "architectures": ["SiglipModel"], "initializer_factor": 1.0, "model_type": "siglip",
    "text_config": {"model_type": "siglip_text_model"},
    "vision_config": {"model_type": "siglip_vision_model"},
}  # fmt: skip
BLIP = {
    "architectures": ["BlipForConditionalGeneration"], "image_text_hidden_size": 256,
    "initializer_factor": 1.0, "logit_scale_init_value": 2.6592, "model_type": "blip",
    "projection_dim": 512,
    "text_config": {
        "_name_or_path": "", "add_cross_attention": False, "architectures": None,
        "attention_probs_dropout_prob": 0.0, "bos_token_id": 30522, "encoder_hidden_size": 768,
        "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
        "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072,
        "is_decoder": True, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "model_type": "blip_text_model", "num_attention_heads": 12, "num_beams": 1,
        "num_hidden_layers": 12, "pad_token_id": 0, "projection_dim": 768, "pruned_heads": {},
        "sep_token_id": 102, "tie_word_embeddings": True, "use_cache": True, "vocab_size": 30524,
    },
    "torch_dtype": "float32",
    "vision_config": {
        "attention_dropout": 0.0, "dropout": 0.0, "hidden_act": "gelu", "hidden_size": 768,
        "image_size": 384, "initializer_factor": 1.0, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-05, "model_type": "blip_vision_model",
        "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16,
        "projection_dim": 512, "tie_word_embeddings": True,
    },
}  # fmt: skip
CLIP_TEXT = {  # of Stable Diffusion
    "architectures": ["CLIPTextModel"], "attention_dropout": 0.0, "bos_token_id": 0,
    "dropout": 0.0, "eos_token_id": 2, "hidden_act": "quick_gelu", "hidden_size": 768,
    "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-05, "max_position_embeddings": 77, "model_type": "clip_text_model",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "projection_dim": 768,
    "torch_dtype": "float32", "vocab_size": 49408,
}  # fmt: skip
CLIP_VISION = {
    "architectures": ["CLIPVisionModelWithProjection"], "attention_dropout": 0.0, "dropout": 0.0,
    "hidden_act": "gelu", "hidden_size": 1280, "image_size": 224, "initializer_factor": 1.0,
    "initializer_range": 0.02, "intermediate_size": 5120, "layer_norm_eps": 1e-05,
    "model_type": "clip_vision_model", "num_attention_heads": 16, "num_channels": 3,
    "num_hidden_layers": 32, "patch_size": 14, "projection_dim": 1024, "torch_dtype": "float16",
}  # fmt: skip
SIGLIP_VISION = {
    "architectures": ["SiglipVisionModel"], "attention_dropout": 0.0,
    "hidden_act": "gelu_pytorch_tanh", "hidden_size": 768, "image_size": 224,
    "intermediate_size": 3072, "layer_norm_eps": 1e-06, "model_type": "siglip_vision_model",
    "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16,
}  # fmt: skip
SIGLIP_TEXT = {
    "architectures": ["SiglipTextModel"], "hidden_size": 1152, "intermediate_size": 4304,
    "model_type": "siglip_text_model", "num_attention_heads": 16, "num_hidden_layers": 27,
    "projection_size": 1152, "vocab_size": 32000,
}  # fmt: skip
BEIT = {
    "architectures": ["BeitForImageClassification"], "attention_probs_dropout_prob": 0.0,
    "auxiliary_channels": 256, "auxiliary_concat_input": False, "auxiliary_loss_weight": 0.4,
    "auxiliary_num_convs": 1, "drop_path_rate": 0.1, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0, "hidden_size": 768,
    "id2label": {str(i): f"name {i}" for i in range(1000)}, "image_size": 224,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
    "layer_scale_init_value": 0.1, "model_type": "beit", "num_attention_heads": 12,
    "num_channels": 3, "num_hidden_layers": 12, "out_indices": [3, 5, 7, 11], "patch_size": 16,
    "pool_scales": [1, 2, 3, 6], "semantic_loss_ignore_index": 255, "torch_dtype": "float32",
    "use_absolute_position_embeddings": False, "use_auxiliary_head": True,
    "use_mask_token": False, "use_mean_pooling": True, "use_relative_position_bias": True,
    "use_shared_relative_position_bias": False, "vocab_size": 8192,
}  # fmt: skip
TROCR = {
    "architectures": ["VisionEncoderDecoderModel"],
    "decoder": {
        "_name_or_path": "", "activation_dropout": 0.0, "activation_function": "gelu",
        "add_cross_attention": True, "architectures": None, "attention_dropout": 0.0,
        "bad_words_ids": None, "bos_token_id": 0, "chunk_size_feed_forward": 0,
        "classifier_dropout": 0.0, "cross_attention_hidden_size": 768, "d_model": 1024,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0,
        "decoder_layers": 12, "decoder_start_token_id": 2, "do_sample": False, "dropout": 0.1,
        "eos_token_id": 2, "finetuning_task": None, "init_std": 0.02, "is_decoder": True,
        "is_encoder_decoder": False, "layernorm_embedding": True, "max_length": 20,
        "max_position_embeddings": 512, "model_type": "trocr", "num_beams": 1, "pad_token_id": 1,
        "prefix": None, "pruned_heads": {}, "scale_embedding": False, "tie_word_embeddings": True,
        "torchscript": False, "use_bfloat16": False, "use_cache": False,
        "use_learned_position_embeddings": True, "vocab_size": 50265,
    },
    "encoder": {
        "add_cross_attention": False, "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "hidden_size": 768, "image_size": 384,
        "initializer_range": 0.02, "intermediate_size": 3072, "is_decoder": False,
        "layer_norm_eps": 1e-12, "model_type": "vit", "num_attention_heads": 12,
        "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": False,
        "top_k": 50, "torch_dtype": None,
    },
    "is_encoder_decoder": True, "model_type": "vision-encoder-decoder",
    "processor_class": "TrOCRProcessor", "tie_word_embeddings": False, "torch_dtype": "float32",
}  # fmt: skip
EXTRA = {"vision-encoder-decoder": 768 * 769 + 2 * 1024}
"""Number of parameters that only transformers has: a pooler, unused positions."""

ALL = [VIT, DEIT, DINOV2, CLIP, SIGLIP, TROCR, BEIT]
ALL += [BLIP, CLIP_TEXT, CLIP_VISION, SIGLIP_TEXT, SIGLIP_VISION]
