"""Speech models of transformers with small random weights."""

import transformers as hf

_WAV2VEC2 = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "conv_dim": [4, 4], "conv_kernel": [5, 3], "conv_stride": [3, 2],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "pad_token_id": 3,
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
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
