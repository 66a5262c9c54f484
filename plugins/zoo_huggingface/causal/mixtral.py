"""Mixtral: Mistral with experts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo.plugin import TensorReader
from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.experts import (
    EXPERT,
    IGNORED,
    are_fused,
    experts_fields,
    experts_template,
    read_map,
    with_local_experts,
)
from zoo_huggingface.causal.mistral import Mistral
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import ConfigField


class Mixtral(Mistral):
    """Mixtral (Jiang et al. 2024)."""

    name = "mixtral"
    model_classes = ("MixtralForCausalLM",)
    default_kv_heads = 8
    default_window = None
    rope = Rope(theta=1000000.0)
    network = EXPERT
    template = experts_template(Mistral.template)
    fields = experts_fields(
        Mistral.fields,
        count=8,
        selected=2,
        rms_norm_eps=ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-5),
    )
    used_keys = (*Mistral.used_keys, "num_experts")
    ignored_keys: ClassVar[Mapping[str, str]] = {**Mistral.ignored_keys, **IGNORED}

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        extended = super().extend_config(config, folder, weights)
        return {**extended, "fused_experts": are_fused(weights)}

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(with_local_experts(config))

    def map(self, config: Config) -> Any:
        return read_map(MAPS / "mixtral.yaml", config)
