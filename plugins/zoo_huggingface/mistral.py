"""Mistral: Llama with sliding-window attention, supported if the window covers the context."""

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import REQUIRED, config_error, get_value
from zoo_huggingface.llama import Llama

_WINDOW, _CONTEXT = 4096, 131072
"""The defaults of ``sliding_window`` and ``max_position_embeddings``."""


class Mistral(Llama):
    """Mistral without an effective sliding window (Jiang et al. 2023)."""

    name = "mistral"
    model_classes = ("MistralForCausalLM",)
    default_kv_heads = REQUIRED

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        window = config.get("sliding_window", _WINDOW)
        context = get_value(config, "max_position_embeddings", int, _CONTEXT)
        if window is not None and not (type(window) is int and window >= context):
            raise config_error(
                "sliding_window",
                window,
                f"sliding windows shorter than the context of {context} are not supported",
            )

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["sliding_window"] = None

    def _bias(self, config: Config) -> bool | str:
        return False
