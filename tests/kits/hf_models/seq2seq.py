"""Sequence-to-sequence models of transformers with small random weights."""

import transformers as hf

from hf_models.tokens import EOS, PAD

_T5 = {
    "vocab_size": 31, "d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 2,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
    "decoder_start_token_id": PAD, "eos_token_id": EOS,
}  # fmt: skip
_BART = {
    "vocab_size": 31, "d_model": 8, "encoder_layers": 2, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 10, "max_position_embeddings": 32, "pad_token_id": 1, "eos_token_id": EOS,
    "decoder_start_token_id": EOS, "forced_eos_token_id": None,
}  # fmt: skip

MODELS = {
    "bart": (hf.BartForConditionalGeneration, hf.BartConfig(**_BART)),
    "mbart": (
        hf.MBartForConditionalGeneration,
        hf.MBartConfig(**_BART | {"decoder_start_token_id": None}, scale_embedding=True),
    ),
    "pegasus": (
        hf.PegasusForConditionalGeneration,
        hf.PegasusConfig(**_BART | {"pad_token_id": PAD, "decoder_start_token_id": PAD}),
    ),
    "m2m_100": (hf.M2M100ForConditionalGeneration, hf.M2M100Config(**_BART)),
    "marian": (
        hf.MarianMTModel,
        hf.MarianConfig(
            vocab_size=31, d_model=8, encoder_layers=2, decoder_layers=1,
            encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=12,
            decoder_ffn_dim=10, max_position_embeddings=32, pad_token_id=PAD, eos_token_id=EOS,
            decoder_start_token_id=PAD, scale_embedding=True, activation_function="swish",
            forced_eos_token_id=None,
        ),
    ),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config(**_T5, num_decoder_layers=1)),
    "t5-1.1": (
        hf.T5ForConditionalGeneration,
        hf.T5Config(**_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    ),
    "mt5": (hf.MT5ForConditionalGeneration, hf.MT5Config(**_T5, num_decoder_layers=1)),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name, then a variant."""

VALUES = {}
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
