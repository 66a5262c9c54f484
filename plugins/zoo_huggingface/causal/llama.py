"""Llama, the base of Mistral and Qwen2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_mapping,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)

_THETA = 10000.0


class Llama(CausalLMArchitecture):
    """Llama, optionally with grouped-query attention (Touvron et al. 2023)."""

    name = "llama"
    model_classes: ClassVar[tuple[str, ...]] = ("LlamaForCausalLM",)
    embedding_key = "model.embed_tokens.weight"
    adds_bos = True
    default_kv_heads: ClassVar[Any] = None
    """The default of ``num_key_value_heads``."""
    tied_by_default = False
    used_keys: ClassVar[tuple[str, ...]] = (
        *CausalLMArchitecture.used_keys,
        *("attention_bias", "head_dim", "mlp_bias", "num_key_value_heads"),
        *("rope_parameters", "rope_scaling", "rope_theta"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "rotary positions are not limited": "max_position_embeddings max_sequence_length",
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
    fields = (
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
    required_values: ClassVar[tuple[RequiredValue, ...]] = (
        *CausalLMArchitecture.causal_values,
        RequiredValue("partial_rotary_factor", 1.0, "partial rotary embeddings are not supported"),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "llama.yaml"

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        attention = decoder["attention"]
        heads, width = attention["heads"], spec["model"]["embedding"]["dim"]
        attention["kv_heads"] = (
            get_value(config, "num_key_value_heads", int, self.default_kv_heads) or heads
        )
        attention["head_dim"] = get_value(config, "head_dim", int, None) or width // heads
        attention["bias"] = self._bias(config)
        decoder["feed_forward"]["bias"] = get_value(config, "mlp_bias", bool, False)
        decoder["position"]["theta"] = _read_rope_theta(config)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        attention = get_path(spec, "model.decoder.attention")
        heads, width = attention["heads"], get_path(spec, self.dim_path)
        config["num_key_value_heads"] = attention["kv_heads"] or heads
        config["head_dim"] = attention["head_dim"] or width // heads
        config["attention_bias"] = attention["bias"] is True
        config["mlp_bias"] = get_path(spec, "model.decoder.feed_forward.bias")
        theta = self.require(spec, "model.decoder.position.theta")
        # transformers 4 reads the first, 5 the second.
        config |= {"rope_theta": theta, "rope_scaling": None}
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}

    def _bias(self, config: Config) -> bool | str:
        bias: bool = get_value(config, "attention_bias", bool, False)
        return bias


def _read_rope_theta(config: Config) -> float:
    """Return the base of the rotary angles; scaled angles are not supported."""
    # transformers 4 writes rope_scaling, 5 rope_parameters; the former takes precedence.
    key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    scaling = get_mapping(config, key)
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    if rope_type != "default":
        raise config_error(key, scaling, "scaled rotary embeddings are not supported")
    if scaling.get("partial_rotary_factor", 1.0) != 1.0:
        raise config_error(key, scaling, "partial rotary embeddings are not supported")
    if any(isinstance(value, Mapping) for value in scaling.values()):
        raise config_error(key, scaling, "a base per layer type is not supported")
    theta: float = get_value({**config, **scaling}, "rope_theta", float, _THETA)
    return theta
