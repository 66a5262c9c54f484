"""Speech models of transformers with small random weights."""

import transformers as hf

_WAV2VEC2 = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "conv_dim": [4, 4], "conv_kernel": [5, 3], "conv_stride": [3, 2],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "pad_token_id": 3,
}  # fmt: skip
_BUCKETS = {"num_buckets": 8, "max_bucket_distance": 9}
_WHISPER = {
    "vocab_size": 31, "d_model": 8, "num_mel_bins": 5, "encoder_layers": 2, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 10, "max_source_positions": 4, "max_target_positions": 24,
    "pad_token_id": 2, "bos_token_id": 2, "eos_token_id": 2, "decoder_start_token_id": 3,
    "begin_suppress_tokens": None,
}  # fmt: skip
_SPEECH_TO_TEXT = {
    "vocab_size": 31, "d_model": 8, "input_feat_per_channel": 5, "conv_channels": 6,
    "conv_kernel_sizes": [3, 5], "encoder_layers": 2, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 10, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3,
}  # fmt: skip

MODELS = {
    "wav2vec2": (hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**_WAV2VEC2)),
    "wav2vec2-stable": (
        hf.Wav2Vec2ForCTC,
        hf.Wav2Vec2Config(
            **_WAV2VEC2, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True
        ),
    ),
    "hubert": (hf.HubertForCTC, hf.HubertConfig(**_WAV2VEC2)),
    "hubert-stable": (
        hf.HubertForCTC,
        hf.HubertConfig(
            **_WAV2VEC2, feat_extract_norm="layer", do_stable_layer_norm=True,
            feat_proj_layer_norm=False,
        ),
    ),
    "wavlm": (hf.WavLMForCTC, hf.WavLMConfig(**_WAV2VEC2, **_BUCKETS)),
    "wavlm-stable": (
        hf.WavLMForCTC,
        hf.WavLMConfig(
            **_WAV2VEC2, **_BUCKETS, feat_extract_norm="layer", do_stable_layer_norm=True
        ),
    ),
    "wav2vec2-classifier": (
        hf.Wav2Vec2ForSequenceClassification,
        hf.Wav2Vec2Config(
            **_WAV2VEC2, feat_extract_norm="layer", num_labels=3, classifier_proj_size=6
        ),
    ),
    "wav2vec2-features": (hf.Wav2Vec2Model, hf.Wav2Vec2Config(**_WAV2VEC2)),
    "hubert-classifier": (
        hf.HubertForSequenceClassification,
        hf.HubertConfig(**_WAV2VEC2, num_labels=3, classifier_proj_size=6),
    ),
    "hubert-features": (hf.HubertModel, hf.HubertConfig(**_WAV2VEC2)),
    "wavlm-features": (hf.WavLMModel, hf.WavLMConfig(**_WAV2VEC2, **_BUCKETS)),
    "speech_to_text": (
        hf.Speech2TextForConditionalGeneration,
        hf.Speech2TextConfig(**_SPEECH_TO_TEXT),
    ),
    "whisper": (hf.WhisperForConditionalGeneration, hf.WhisperConfig(**_WHISPER)),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {
    "speech_to_text": {
        "conv_kernel_sizes": [[1, 3], [5, 5], [4, 3]],
        "conv_channels": [12],
        "pad_token_id": [0, 4],
        "input_feat_per_channel": [7],
    },
    "wavlm": {"num_buckets": [4, 12], "max_bucket_distance": [8, 16, 40]},
}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
