"""Qwen2: Llama with a bias in the query, key and value projections."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.layer_kinds import (
    read_window,
    shortest_pattern,
    windowed_layers,
    write_layer_types,
)
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import REQUIRED, RequiredValue, get_value
from zoo_huggingface.config_keys import ignored_keys

_WINDOW, _FIRST_WINDOW = 4096, 28
"""The defaults of ``sliding_window`` and ``max_window_layers``."""


class Qwen2(Llama):
    """Qwen2; its tokenizer adds no start token (Yang et al. 2024)."""

    name = "qwen2"
    model_classes = ("Qwen2ForCausalLM", "Qwen2Model")
    default_kv_heads = REQUIRED
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    used_keys = (
        *Llama.used_keys,
        *("layer_types", "max_window_layers", "sliding_window", "use_sliding_window"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"transformers does not read it": "use_mrope"}),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", False, "its feed-forward layers have no bias"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        first = get_value(config, "max_window_layers", int, _FIRST_WINDOW)
        used = get_value(config, "use_sliding_window", bool, False)
        window = read_window(config, _WINDOW) if used else None
        default = [window is not None and index >= first for index in range(decoder["layers"])]
        kinds = windowed_layers(config, decoder["layers"], default, window)
        decoder["pattern"] = shortest_pattern(kinds)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        write_layer_types(config, spec)

    def _bias(self, config: Config) -> bool | str:
        return "qkv"
