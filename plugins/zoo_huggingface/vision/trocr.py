"""Decoder of TrOCR, a part of vision-encoder-decoder."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, config_error, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import activation_field, transformer_template
from zoo_huggingface.vision.decoder_part import DecoderPart

_SINUSOIDAL = {"type": "sinusoidal", "layout": "halves", "exponents": "tensor2tensor"}
_LEARNED = "use_learned_position_embeddings"


class TrOCRDecoder(DecoderPart):
    """Decoder of TrOCR, with learned or sinusoidal positions (Li et al. 2023)."""

    name = "trocr"
    model_classes = ("TrOCRForCausalLM",)
    embedding_key = "decoder.model.decoder.embed_tokens.weight"
    tied_weight_names = ("decoder.output_projection.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "target": {"type": "token"},
        "decoder": transformer_template(norm={"place": "post"}),
    }
    fields = (
        ConfigField("vocab_size", "model.target.vocab", int, 50265),
        ConfigField("d_model", "model.target.dim", int, 1024),
        ConfigField("decoder_layers", "model.decoder.layers", int, 12),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads", int, 16),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden", int, 4096),
        activation_field("activation_function", "decoder", "gelu"),
        ConfigField("scale_embedding", "model.target.scaled", bool, False),
        ConfigField("layernorm_embedding", "model.decoder.norm.embedding", bool, True),
        ConfigField("dropout", "model.decoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("init_std", "model.target.std", float, 0.02),
    )
    used_keys = (
        *DecoderPart.used_keys,
        "cross_attention_hidden_size",
        "max_position_embeddings",
        "pad_token_id",
        _LEARNED,
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **DecoderPart.ignored_keys,
        **ignored_keys(
            {
                "it affects training only": "activation_dropout decoder_layerdrop",
                "transformers sets it to true": "add_cross_attention is_decoder",
            }
        ),
    }
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "decoder_attention_heads",
        "num_hidden_layers": "decoder_layers",
    }

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        padding = ConfigField("pad_token_id", "", int, 1, minimum=0).read(config)
        model = spec["model"]
        model["target"]["padding"] = None if padding == model["eos"] else padding
        if get_value(config, _LEARNED, bool, True):
            length = ConfigField("max_position_embeddings", "", int, 512).read(config)
            model["decoder"]["position"] = {"type": "learned", "length": length}
            return
        if padding in (model["bos"], model["eos"]):
            raise config_error(
                "pad_token_id", padding, "start and end tokens need positions, but padding has none"
            )
        model["decoder"]["position"] = {**_SINUSOIDAL, "start": padding + 1}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        position = get_path(spec, "model.decoder.position") or {}
        padding = get_path(spec, "model.target.padding")
        config["pad_token_id"] = get_path(spec, "model.eos") if padding is None else padding
        config[_LEARNED] = str(position.get("type")).rpartition(":")[2] == "learned"
        if config[_LEARNED]:
            config["max_position_embeddings"] = position["length"]
        width, memory = (self.require(spec, f"model.{side}.dim") for side in ("target", "source"))
        config["cross_attention_hidden_size"] = None if width == memory else memory
