"""Llama, and the models built like it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.settings import ACTIVATIONS, Only, Setting, at, refused, table, valued
from zoo_huggingface.speakers import Speaker

_THETA = 10000.0


class Llama(Speaker):
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
        Setting("vocab_size", "model.embedding.vocab"),
        Setting("hidden_size", "model.embedding.dim"),
        Setting("intermediate_size", "model.decoder.feed_forward.hidden"),
        Setting("num_hidden_layers", "model.decoder.layers"),
        Setting("num_attention_heads", "model.decoder.attention.heads"),
        Setting(
            "hidden_act", "model.decoder.feed_forward.activation", str, "silu", words=ACTIVATIONS
        ),
        Setting("rms_norm_eps", "model.decoder.norm.eps", float, 1e-6),
        Setting("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        Setting("initializer_range", "model.embedding.std", float, 0.02),
    )
    only: ClassVar[tuple[Only, ...]] = (
        Only("partial_rotary_factor", 1.0, "all of a head is turned here"),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "llama.yaml"

    def adapt(self, made: dict[str, Any], config: Config) -> None:
        super().adapt(made, config)
        decoder = made["model"]["decoder"]
        attention = decoder["attention"]
        heads, width = attention["heads"], made["model"]["embedding"]["dim"]
        attention["kv_heads"] = valued(config, "num_key_value_heads", int, self.grouped) or heads
        attention["head_dim"] = valued(config, "head_dim", int, None) or width // heads
        attention["bias"] = self._bias(config)
        decoder["feed_forward"]["bias"] = valued(config, "mlp_bias", bool, False)
        decoder["position"]["theta"] = _theta(config)

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
        bias: bool = valued(config, "attention_bias", bool, False)
        return bias


def _theta(config: Config) -> float:
    """The base of the angles, which no scaling may bend."""
    # Versions 4 and 5 of transformers have a table each; the older counts where both are set.
    key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    scaling = table(config, key)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise refused(key, scaling, "rotary positions are not scaled here")
    if scaling.get("partial_rotary_factor", 1.0) != 1.0:
        raise refused(key, scaling, "all of a head is turned here")
    if any(isinstance(value, Mapping) for value in scaling.values()):
        raise refused(key, scaling, "all layers turn by one base here")
    theta: float = valued({**config, **scaling}, "rope_theta", float, _THETA)
    return theta
