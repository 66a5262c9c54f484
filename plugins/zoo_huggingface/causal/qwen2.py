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
from zoo_huggingface.config_fields import REQUIRED, RequiredValue, config_error, get_value
from zoo_huggingface.config_keys import ignored_keys

_WINDOW, _FIRST_WINDOW = 4096, 28
"""The defaults of ``sliding_window`` and ``max_window_layers``."""


class Qwen2(Llama):
    """Qwen2; its tokenizer adds no start token (Yang et al. 2024)."""

    name = "qwen2"
    model_classes: ClassVar[tuple[str, ...]] = ("Qwen2ForCausalLM", "Qwen2Model")
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
        decoder["pattern"] = shortest_pattern(self._kinds(spec, config))

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        write_layer_types(config, spec)

    def _kinds(self, spec: Mapping[str, Any], config: Config) -> list[dict[str, Any]]:
        """Return the kind of each layer."""
        layers: int = spec["model"]["decoder"]["layers"]
        first = get_value(config, "max_window_layers", int, _FIRST_WINDOW)
        window = self._window(config)
        default = [window is not None and self._slides(index, first) for index in range(layers)]
        return windowed_layers(config, layers, default, window)

    def _window(self, config: Config) -> int | None:
        """Return the window of the layers that have one."""
        used = get_value(config, "use_sliding_window", bool, False)
        if used and config.get("sliding_window") == 0:
            raise config_error("use_sliding_window", used, "it requires a 'sliding_window' above 0")
        return read_window(config, _WINDOW) if used else None

    def _slides(self, index: int, first: int) -> bool:
        """Return whether a layer has a window by default; `first` is ``max_window_layers``."""
        return index >= first

    def _bias(self, config: Config) -> bool | str:
        return "qkv"
