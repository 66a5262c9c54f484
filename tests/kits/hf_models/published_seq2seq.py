"""Configs of published sequence-to-sequence and speech models."""

MARIAN = {
    "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False,
    "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "attention_dropout": 0.0,
    "bad_words_ids": [[58100]], "bos_token_id": 0, "d_model": 512, "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048, "decoder_layers": 6, "decoder_start_token_id": 58100,
    "dropout": 0.1, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "encoder_layers": 6,
    "eos_token_id": 0, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 512,
    "max_position_embeddings": 512, "model_type": "marian", "normalize_before": False,
    "normalize_embedding": False, "num_beams": 6, "pad_token_id": 58100, "scale_embedding": True,
    "static_position_embeddings": True, "vocab_size": 58101,
}  # fmt: skip
BART = {
    "_num_labels": 3, "activation_dropout": 0.0, "activation_function": "gelu",
    "add_final_layer_norm": False, "architectures": ["BartForConditionalGeneration"],
    "attention_dropout": 0.0, "bos_token_id": 0, "classif_dropout": 0.0, "classifier_dropout": 0.0,
    "d_model": 1024, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096,
    "decoder_layerdrop": 0.0, "decoder_layers": 12, "decoder_start_token_id": 2, "dropout": 0.1,
    "early_stopping": True, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096,
    "encoder_layerdrop": 0.0, "encoder_layers": 12, "eos_token_id": 2,
    "force_bos_token_to_be_generated": True, "forced_bos_token_id": 0, "forced_eos_token_id": 2,
    "gradient_checkpointing": False, "init_std": 0.02, "is_encoder_decoder": True,
    "length_penalty": 2.0, "max_length": 142, "max_position_embeddings": 1024, "min_length": 56,
    "model_type": "bart", "no_repeat_ngram_size": 3, "normalize_before": False, "num_beams": 4,
    "num_hidden_layers": 12, "output_past": True, "pad_token_id": 1, "prefix": " ",
    "scale_embedding": False, "use_cache": True, "vocab_size": 50264,
}  # fmt: skip
MBART = BART | {
    "activation_function": "relu", "add_bias_logits": False, "add_final_layer_norm": True,
    "architectures": ["MBartForConditionalGeneration"], "force_bos_token_to_be_generated": None,
    "forced_bos_token_id": None, "min_length": 0, "model_type": "mbart", "normalize_before": True,
    "normalize_embedding": True, "scale_embedding": True, "static_position_embeddings": False,
    "tokenizer_class": "MBart50Tokenizer", "vocab_size": 250054,
}  # fmt: skip
PEGASUS = BART | {
    "activation_function": "relu", "add_bias_logits": False, "add_final_layer_norm": True,
    "architectures": ["PegasusForConditionalGeneration"], "decoder_layers": 16,
    "decoder_start_token_id": 0, "encoder_layers": 16, "eos_token_id": 1,
    "extra_pos_embeddings": 1, "forced_bos_token_id": None, "forced_eos_token_id": 1,
    "max_position_embeddings": 512, "min_length": 0, "model_type": "pegasus",
    "normalize_before": True, "normalize_embedding": False, "num_hidden_layers": 16,
    "pad_token_id": 0, "scale_embedding": True, "static_position_embeddings": True,
    "vocab_size": 96103,
}  # fmt: skip
NLLB = BART | {
    "activation_function": "relu", "add_final_layer_norm": True,
    "architectures": ["M2M100ForConditionalGeneration"], "forced_bos_token_id": None,
    "max_length": 200, "min_length": 0, "model_type": "m2m_100", "normalize_before": True,
    "scale_embedding": True, "tokenizer_class": "NllbTokenizer", "vocab_size": 256206,
}  # fmt: skip
T5 = {
    "architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5",
    "n_positions": 512, "num_heads": 8, "num_layers": 6, "output_past": True, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "vocab_size": 32128,
}  # fmt: skip
MT5 = T5 | {
    "architectures": ["MT5ForConditionalGeneration"], "d_ff": 1024, "feed_forward_proj":
    "gated-gelu", "model_type": "mt5", "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8,
    "tie_word_embeddings": False, "tokenizer_class": "T5Tokenizer", "vocab_size": 250112,
    "relative_attention_max_distance": 128, "output_past": True,
}  # fmt: skip
WAVE = {
    "activation_dropout": 0.1, "apply_spec_augment": True, "architectures": ["Wav2Vec2ForCTC"],
    "attention_dropout": 0.1, "bos_token_id": 1, "conv_bias": False, "conv_dim": [512] * 7,
    "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2],
    "ctc_loss_reduction": "sum", "do_stable_layer_norm": False, "eos_token_id": 2,
    "feat_extract_activation": "gelu", "feat_extract_norm": "group", "final_dropout": 0.1,
    "hidden_act": "gelu", "hidden_dropout": 0.1, "hidden_size": 768, "intermediate_size": 3072,
    "layer_norm_eps": 1e-05, "layerdrop": 0.1, "mask_time_prob": 0.05, "model_type": "wav2vec2",
    "num_attention_heads": 12, "num_conv_pos_embedding_groups": 16,
    "num_conv_pos_embeddings": 128, "num_feat_extract_layers": 7, "num_hidden_layers": 12,
    "pad_token_id": 0, "vocab_size": 32,
}  # fmt: skip
HUBERT = WAVE | {
    "architectures": ["HubertForCTC"], "conv_bias": True, "do_stable_layer_norm": True,
    "feat_extract_dropout": 0.0, "feat_extract_norm": "layer", "feat_proj_layer_norm": True,
    "gradient_checkpointing": False, "hidden_size": 1024, "intermediate_size": 4096,
    "mask_channel_length": 10, "mask_channel_prob": 0.0, "model_type": "hubert",
    "num_attention_heads": 16, "num_hidden_layers": 24, "tokenizer_class": "Wav2Vec2CTCTokenizer",
}  # fmt: skip
WHISPER = {
    "activation_dropout": 0.0, "activation_function": "gelu", "apply_spec_augment": False,
    "architectures": ["WhisperForConditionalGeneration"], "attention_dropout": 0.0,
    "begin_suppress_tokens": [220, 50257], "bos_token_id": 50257, "d_model": 384,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "decoder_layerdrop": 0.0,
    "decoder_layers": 4, "decoder_start_token_id": 50258, "dropout": 0.0,
    "encoder_attention_heads": 6, "encoder_ffn_dim": 1536, "encoder_layerdrop": 0.0,
    "encoder_layers": 4, "eos_token_id": 50257,
    "forced_decoder_ids": [[1, 50259], [2, 50359], [3, 50363]], "init_std": 0.02,
    "is_encoder_decoder": True, "max_length": 448, "max_source_positions": 1500,
    "max_target_positions": 448, "median_filter_width": 7, "model_type": "whisper",
    "num_hidden_layers": 4, "num_mel_bins": 80, "pad_token_id": 50257, "scale_embedding": False,
    "suppress_tokens": [
        1, 2, 7, 8, 9, 10, 14, 25, 26, 27, 28, 29, 31, 58, 59, 60, 61, 62, 63, 90, 91, 92, 93, 359,
        503, 522, 542, 873, 893, 902, 918, 922, 931, 1350, 1853, 1982, 2460, 2627, 3246, 3253, 3268,
        3536, 3846, 3961, 4183, 4667, 6585, 6647, 7273, 9061, 9383, 10428, 10929, 11938, 12033,
        12331, 12562, 13793, 14157, 14635, 15265, 15618, 16553, 16604, 18362, 18956, 20075, 21675,
        22520, 26130, 26161, 26435, 28279, 29464, 31650, 32302, 32470, 36865, 42863, 47425, 49870,
        50254, 50258, 50358, 50359, 50360, 50361, 50362,
    ],
    "torch_dtype": "float32",
    "use_cache": True, "vocab_size": 51865,
}  # fmt: skip
WAVLM = WAVE | {
    "adapter_kernel_size": 3, "adapter_stride": 2, "add_adapter": False,
    "architectures": ["WavLMForCTC"], "classifier_proj_size": 256, "codevector_dim": 256,
    "ctc_zero_infinity": False, "feat_quantizer_dropout": 0.0, "freeze_feat_extract_train": True,
    "mask_channel_other": 0.0, "mask_time_selection": "static", "max_bucket_distance": 800,
    "model_type": "wavlm", "num_buckets": 320, "num_ctc_classes": 80, "output_hidden_size": 768,
    "replace_prob": 0.5, "tdnn_dilation": [1, 2, 3, 1, 1], "use_weighted_layer_sum": False,
}  # fmt: skip
SPEECH_TO_TEXT = {
    "activation_dropout": 0.1, "activation_function": "relu",
    "architectures": ["Speech2TextForConditionalGeneration"], "attention_dropout": 0.1,
    "bos_token_id": 0, "classifier_dropout": 0.0, "conv_channels": 1024,
    "conv_kernel_sizes": [5, 5], "d_model": 256, "decoder_attention_heads": 4,
    "decoder_ffn_dim": 2048, "decoder_layerdrop": 0.0, "decoder_layers": 6,
    "decoder_start_token_id": 2, "dropout": 0.1, "early_stopping": True,
    "encoder_attention_heads": 4, "encoder_ffn_dim": 2048, "encoder_layerdrop": 0.0,
    "encoder_layers": 12, "eos_token_id": 2, "gradient_checkpointing": False, "init_std": 0.02,
    "input_channels": 1, "input_feat_per_channel": 80, "is_encoder_decoder": True,
    "max_length": 200, "max_source_positions": 6000, "max_target_positions": 1024,
    "model_type": "speech_to_text", "num_beams": 5, "num_conv_layers": 2,
    "num_hidden_layers": 12, "pad_token_id": 1, "scale_embedding": True, "use_cache": True,
    "vocab_size": 10000,
}  # fmt: skip

ALL = [MARIAN, BART, MBART, PEGASUS, NLLB, T5, MT5, WAVE, HUBERT, WHISPER, WAVLM]
ALL += [SPEECH_TO_TEXT]
EXTRA = {
    "marian": 2 * 512 * 512, "bart": 4 * 1024, "mbart": 4 * 1024, "pegasus": 2 * 512 * 1024,
    "wav2vec2": 768, "hubert": 1024, "wavlm": 768,
}  # fmt: skip
"""Number of parameters that only transformers has, by model type."""
