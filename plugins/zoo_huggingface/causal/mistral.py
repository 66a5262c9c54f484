"""Mistral: Llama without a bias; sliding windows are not supported."""

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import REQUIRED, RequiredValue, config_error

_WINDOW = 4096
"""The default of ``sliding_window``."""


class Mistral(Llama):
    """Mistral without a sliding window (Jiang et al. 2023)."""

    name = "mistral"
    model_classes = ("MistralForCausalLM",)
    default_kv_heads = REQUIRED
    used_keys = (*Llama.used_keys, "sliding_window")
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", False, "Mistral has no bias in its feed-forward layers"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        window = config.get("sliding_window", _WINDOW)
        if window is not None:
            raise config_error(
                "sliding_window",
                window,
                "sliding windows are not supported; if no text has more tokens, set it to null in "
                "the file",
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["sliding_window"] = None

    def _bias(self, config: Config) -> bool | str:
        return False
