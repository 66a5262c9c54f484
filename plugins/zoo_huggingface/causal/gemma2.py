"""Gemma 2: norms on both sides of sublayers, windows in every other layer, soft caps."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.gemma import Gemma, gemma_template
from zoo_huggingface.causal.layer_kinds import (
    read_window,
    shortest_pattern,
    windowed_layers,
    write_layer_types,
)
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import ConfigField, config_error, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import activation_field

_WINDOW, _SCALAR = 4096, 256
"""The defaults of ``sliding_window`` and ``query_pre_attn_scalar``."""
_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")


class Gemma2(Gemma):
    """Gemma 2 (Gemma Team 2024)."""

    name = "gemma2"
    model_classes: ClassVar[tuple[str, ...]] = ("Gemma2ForCausalLM",)
    map_name = "gemma2"
    default_kv_heads = 4
    template: ClassVar[Mapping[str, Any]] = gemma_template(place="both")
    fields: ClassVar[tuple[ConfigField, ...]] = (
        *(field for field in Llama.fields if field.key != "hidden_act"),
        activation_field("hidden_activation", "decoder", "gelu_pytorch_tanh"),
    )
    default_caps: ClassVar[Mapping[str, float | None]] = dict(zip(_CAPS, (50.0, 30.0), strict=True))
    """Defaults of the caps of scores and of logits."""
    used_keys: ClassVar[tuple[str, ...]] = (
        *Gemma.used_keys,
        *("layer_types", "sliding_window", "query_pre_attn_scalar", *_CAPS),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"transformers does not read it": "hidden_act cache_implementation"}),
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        attention, layers = decoder["attention"], decoder["layers"]
        scalar = get_value(config, "query_pre_attn_scalar", float, float(_SCALAR))
        if scalar <= 0:
            raise config_error("query_pre_attn_scalar", scalar, "it should be above 0")
        if scalar != attention["head_dim"]:
            attention["scorer"]["scale"] = scalar**-0.5
        scores, logits = (self._read_cap(config, key) for key in _CAPS)
        attention["scorer"] |= {} if scores is None else {"cap": scores}
        decoder["output"] |= {} if logits is None else {"cap": logits}
        default = self.default_windows(config, layers)
        kinds = windowed_layers(config, layers, default, read_window(config, _WINDOW))
        decoder["pattern"] = shortest_pattern(kinds)

    def default_windows(self, config: Config, layers: int) -> list[bool]:
        """Return which layers have a window in a config without ``layer_types``."""
        return [index % 2 == 0 for index in range(layers)]

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        attention = get_path(spec, "model.decoder.attention")
        scale = attention["scorer"].get("scale")
        head_dim = config["head_dim"]
        config["query_pre_attn_scalar"] = head_dim if scale is None else round(scale**-2)
        config["attn_logit_softcapping"] = attention["scorer"].get("cap")
        config["final_logit_softcapping"] = get_path(spec, "model.decoder.output.cap")
        window = config.get("sliding_window", _WINDOW)
        write_layer_types(config, spec)
        del config["use_sliding_window"]
        config["sliding_window"] = config["sliding_window"] or window

    def _read_cap(self, config: Config, key: str) -> float | None:
        given = {key: config.get(key, self.default_caps[key])}
        cap: float | None = get_value(given, key, float, None)
        if cap is not None and cap <= 0:
            raise config_error(key, cap, "it should be above 0")
        return cap
