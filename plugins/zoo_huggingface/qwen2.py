"""Qwen2: Llama whose queries, keys and values have a bias."""

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import REQUIRED, RequiredValue, config_error, get_list
from zoo_huggingface.llama import Llama


class Qwen2(Llama):
    """Qwen2, where it has no window (Yang 2024); its texts begin as they are."""

    name = "qwen2"
    heads = ("Qwen2ForCausalLM",)
    grouped = REQUIRED
    begins = False
    ignored_paths = ("model.bos",)
    only = (
        *Llama.only,
        RequiredValue("use_sliding_window", False, "every token sees all before it here"),
        RequiredValue("mlp_bias", False, "transformers knows none in Qwen2"),
    )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        super().to_spec(made, config)
        kinds = get_list(config, "layer_types", str)
        if any(kind != "full_attention" for kind in kinds):
            raise config_error("layer_types", kinds, "every token sees all before it here")

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().words(made, spec)
        made["layer_types"] = ["full_attention"] * made["num_hidden_layers"]
        made["sliding_window"] = None

    def _bias(self, config: Config) -> bool | str:
        return "qkv"
