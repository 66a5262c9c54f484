"""Llama, the base of Mistral and Qwen2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_encoder import CausalEncoderArchitecture
from zoo_huggingface.causal.rope import LENGTHS, ROPE_KEYS, Rope
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path, get_value, set_path
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)


class Llama(CausalEncoderArchitecture):
    """Llama, optionally with grouped-query attention (Touvron et al. 2023)."""

    name = "llama"
    model_classes: ClassVar[tuple[str, ...]] = ("LlamaForCausalLM", "LlamaModel")
    map_name = "llama"
    embedding_key = "model.embed_tokens.weight"
    adds_bos = True
    default_kv_heads: ClassVar[Any] = None
    """The default of ``num_key_value_heads``."""
    default_head_dim: ClassVar[int | None] = None
    """The default of ``head_dim``; the width divided by the number of heads if None."""
    tied_by_default = False
    used_keys: ClassVar[tuple[str, ...]] = (
        *CausalEncoderArchitecture.used_keys,
        *("attention_bias", "head_dim", "mlp_bias", "num_key_value_heads"),
        *ROPE_KEYS,
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "rotary positions are not limited": "max_sequence_length",
            "transformers does not read it": "is_llama_config rope_interleaved",
        }
    )
    template = language_model_template(
        transformer_template(
            attention={"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": False},
            feed_forward={"gated": True, "bias": False},
            norm={"kind": "rms", "place": "pre"},
            position={"type": "rotary"},
        )
    )
    fields: ClassVar[tuple[ConfigField, ...]] = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("intermediate_size", "model.decoder.feed_forward.hidden"),
        ConfigField("num_hidden_layers", "model.decoder.layers"),
        ConfigField("num_attention_heads", "model.decoder.attention.heads"),
        activation_field("hidden_act", "decoder", "silu"),
        ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-6),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    required_values: ClassVar[tuple[RequiredValue, ...]] = CausalEncoderArchitecture.causal_values
    rope: ClassVar[Rope] = Rope()
    network: ClassVar[str] = "model.decoder.feed_forward"
    """The path of the feed-forward network in a spec, or of an expert."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        attention = decoder["attention"]
        heads, width = attention["heads"], spec["model"]["embedding"]["dim"]
        attention["kv_heads"] = (
            get_value(config, "num_key_value_heads", int, self.default_kv_heads) or heads
        )
        head_dim = get_value(config, "head_dim", int, self.default_head_dim)
        attention["head_dim"] = head_dim or width // heads
        attention["bias"] = self._bias(config)
        set_path(spec, f"{self.network}.bias", get_value(config, "mlp_bias", bool, False))
        decoder["position"] |= self.read_position(self.with_lengths(config))

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        attention = get_path(spec, "model.decoder.attention")
        heads, width = attention["heads"], get_path(spec, self.dim_path)
        config["num_key_value_heads"] = attention["kv_heads"] or heads
        config["head_dim"] = attention["head_dim"] or width // heads
        config["attention_bias"] = attention["bias"] is True
        config["mlp_bias"] = get_path(spec, f"{self.network}.bias")
        self.require(spec, "model.decoder.position.theta")
        self.write_positions(config, get_path(spec, "model.decoder"))

    def with_lengths(self, config: Config) -> Config:
        """Return a config with the lengths of contexts, which scaled positions depend on."""
        lengths = {key: self._defaults[key] for key in LENGTHS if key in self._defaults}
        return {**lengths, **config}

    def read_position(self, config: Config) -> dict[str, Any]:
        """Return the parameters of the position of the decoder."""
        return self.rope.read(config)

    def write_positions(self, config: dict[str, Any], decoder: Mapping[str, Any]) -> None:
        """Set the keys of a config from the positions of a decoder."""
        self.rope.write(config, decoder["position"])

    def _bias(self, config: Config) -> bool | str:
        bias: bool = get_value(config, "attention_bias", bool, False)
        return bias
