"""Qwen2: Llama with a bias in the query, key and value projections."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import REQUIRED, RequiredValue, config_error, get_list
from zoo_huggingface.config_keys import ignored_keys


class Qwen2(Llama):
    """Qwen2 without sliding windows; its tokenizer adds no start token (Yang et al. 2024)."""

    name = "qwen2"
    model_classes = ("Qwen2ForCausalLM",)
    default_kv_heads = REQUIRED
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    used_keys = (*Llama.used_keys, "layer_types")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys(
            {"only sliding windows use it": "max_window_layers sliding_window use_mrope"}
        ),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("use_sliding_window", False, "sliding windows are not supported"),
        RequiredValue("mlp_bias", False, "its feed-forward layers have no bias"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        layer_types = get_list(config, "layer_types", str)
        if any(layer_type != "full_attention" for layer_type in layer_types):
            raise config_error("layer_types", layer_types, "only full_attention is supported")

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["layer_types"] = ["full_attention"] * config["num_hidden_layers"]
        config["sliding_window"] = None

    def _bias(self, config: Config) -> bool | str:
        return "qkv"
