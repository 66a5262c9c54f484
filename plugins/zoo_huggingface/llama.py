"""Llama, and the models built like it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import (
    ACTIVATIONS,
    ConfigField,
    RequiredValue,
    at,
    config_error,
    get_value,
    table,
)

_THETA = 10000.0


class Llama(CausalLMArchitecture):
    """Llama, with grouped keys and values where the config says so (Touvron 2023)."""

    name = "llama"
    heads: ClassVar[tuple[str, ...]] = ("LlamaForCausalLM",)
    table = "model.embed_tokens.weight"
    begins = True
    grouped: ClassVar[Any] = None
    """How many keys and values a config means that does not say."""
    tied = False
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "language-model",
            "embedding": {"type": "token"},
            "decoder": {
                "type": "transformer",
                "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": False},
                "feed_forward": {"gated": True, "bias": False},
                "norm": {"kind": "rms", "place": "pre"},
                "position": {"type": "rotary"},
            },
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("intermediate_size", "model.decoder.feed_forward.hidden"),
        ConfigField("num_hidden_layers", "model.decoder.layers"),
        ConfigField("num_attention_heads", "model.decoder.attention.heads"),
        ConfigField(
            "hidden_act", "model.decoder.feed_forward.activation", str, "silu", words=ACTIVATIONS
        ),
        ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-6),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    only: ClassVar[tuple[RequiredValue, ...]] = (
        RequiredValue("partial_rotary_factor", 1.0, "all of a head is turned here"),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "llama.yaml"

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        super().to_spec(made, config)
        decoder = made["model"]["decoder"]
        attention = decoder["attention"]
        heads, width = attention["heads"], made["model"]["embedding"]["dim"]
        attention["kv_heads"] = get_value(config, "num_key_value_heads", int, self.grouped) or heads
        attention["head_dim"] = get_value(config, "head_dim", int, None) or width // heads
        attention["bias"] = self._bias(config)
        decoder["feed_forward"]["bias"] = get_value(config, "mlp_bias", bool, False)
        decoder["position"]["theta"] = _read_rope_theta(config)

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().words(made, spec)
        attention = at(spec, "model.decoder.attention")
        heads, width = attention["heads"], at(spec, self.dim)
        made["num_key_value_heads"] = attention["kv_heads"] or heads
        made["head_dim"] = attention["head_dim"] or width // heads
        made["attention_bias"] = attention["bias"] is True
        made["mlp_bias"] = at(spec, "model.decoder.feed_forward.bias")
        theta = self.needed(spec, "model.decoder.position.theta")
        # Both spellings: transformers 4 knows the first, 5 the second.
        made |= {"rope_theta": theta, "rope_scaling": None}
        made["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}

    def _bias(self, config: Config) -> bool | str:
        bias: bool = get_value(config, "attention_bias", bool, False)
        return bias


def _read_rope_theta(config: Config) -> float:
    """The base of the angles, which no scaling may bend."""
    # Versions 4 and 5 of transformers have a table each; the older counts where both are set.
    key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    scaling = table(config, key)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise config_error(key, scaling, "rotary positions are not scaled here")
    if scaling.get("partial_rotary_factor", 1.0) != 1.0:
        raise config_error(key, scaling, "all of a head is turned here")
    if any(isinstance(value, Mapping) for value in scaling.values()):
        raise config_error(key, scaling, "all layers turn by one base here")
    theta: float = get_value({**config, **scaling}, "rope_theta", float, _THETA)
    return theta
