"""SmolLM3: Llama in which some layers have no positions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.layer_kinds import (
    layer_kinds,
    read_window,
    shortest_pattern,
    windowed_layers,
    write_layer_types,
)
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import config_error, get_list, get_value
from zoo_huggingface.config_keys import ignored_keys

_INTERVAL = 4
"""The default of ``no_rope_layer_interval``."""


class SmolLM3(Llama):
    """SmolLM3 (Bakouch et al. 2025); its tokenizer adds no start token."""

    name = "smollm3"
    model_classes = ("SmolLM3ForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    default_kv_heads = 4
    tied_by_default = True
    rope = Rope(theta=2000000.0)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"transformers does not read it": "max_window_layers"}),
    }
    used_keys = (
        *Llama.used_keys,
        *("layer_types", "sliding_window", "use_sliding_window"),
        *("no_rope_layers", "no_rope_layer_interval"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        positioned = _read_positions(config, decoder["layers"])
        used = get_value(config, "use_sliding_window", bool, False)
        window = read_window(config) if used else None
        default = [window is not None and not has_position for has_position in positioned]
        kinds = windowed_layers(config, decoder["layers"], default, window)
        for kind, has_position in zip(kinds, positioned, strict=True):
            kind |= {} if has_position else {"no_position": True}
        decoder["pattern"] = shortest_pattern(kinds)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        write_layer_types(config, spec)
        kinds = layer_kinds(spec)
        config["no_rope_layers"] = [int(not kind.get("no_position")) for kind in kinds]


def _read_positions(config: Config, layers: int) -> list[bool]:
    """Return whether each layer has a position."""
    if config.get("no_rope_layers") is None:
        interval = get_value(config, "no_rope_layer_interval", int, _INTERVAL)
        if interval < 1:
            raise config_error("no_rope_layer_interval", interval, "it should be at least 1")
        return [(index + 1) % interval != 0 for index in range(layers)]
    values = get_list(config, "no_rope_layers", int)
    if len(values) < layers or any(value not in (0, 1) for value in values):
        wanted = f"it should have num_hidden_layers ({layers}) values, 0 or 1"
        raise config_error("no_rope_layers", values, wanted)
    return [value == 1 for value in values[:layers]]
