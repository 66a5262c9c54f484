"""Mistral: Llama without a bias, with a sliding window."""

from typing import ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.windowed import WindowedLlama
from zoo_huggingface.config_fields import REQUIRED, RequiredValue


class Mistral(WindowedLlama):
    """Mistral (Jiang et al. 2023)."""

    name = "mistral"
    model_classes: ClassVar[tuple[str, ...]] = ("MistralForCausalLM", "MistralModel")
    default_kv_heads = REQUIRED
    default_window: ClassVar[int | None] = 4096
    required_values = (
        *WindowedLlama.required_values,
        RequiredValue("mlp_bias", False, "Mistral has no bias in its feed-forward layers"),
    )

    def _bias(self, config: Config) -> bool | str:
        return False
