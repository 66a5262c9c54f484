"""Mistral: Llama with a window, where it is as wide as the context."""

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import REQUIRED, config_error, get_value
from zoo_huggingface.llama import Llama

_WINDOW, _CONTEXT = 4096, 131072
"""What a config means that does not say."""


class Mistral(Llama):
    """Mistral, where its window never closes (Jiang 2023)."""

    name = "mistral"
    heads = ("MistralForCausalLM",)
    grouped = REQUIRED

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        super().to_spec(made, config)
        window = config.get("sliding_window", _WINDOW)
        context = get_value(config, "max_position_embeddings", int, _CONTEXT)
        if window is not None and not (type(window) is int and window >= context):
            raise config_error(
                "sliding_window",
                window,
                f"every token sees all before it here, in a context of {context}",
            )

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().words(made, spec)
        made["sliding_window"] = None

    def _bias(self, config: Config) -> bool | str:
        return False
