"""Qwen3: Qwen2 with norms of queries and keys instead of biases."""

from typing import Any

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.qwen2 import Qwen2
from zoo_huggingface.config_fields import ConfigField
from zoo_huggingface.templates import language_model_template, transformer_template


class Qwen3(Qwen2):
    """Qwen3 (Yang et al. 2025)."""

    name = "qwen3"
    model_classes = ("Qwen3ForCausalLM",)
    default_kv_heads = 32
    default_head_dim = 128
    template = language_model_template(
        transformer_template(
            attention={
                "scorer": "scaled-dot",
                "align": {"type": "soft"},
                "norm": {"kind": "rms", "over": "head"},
            },
            feed_forward={"gated": True, "bias": False},
            norm={"kind": "rms", "place": "pre"},
            position={"type": "rotary"},
        )
    )
    fields = (
        *(field for field in Llama.fields if field.key != "rms_norm_eps"),
        ConfigField(
            "rms_norm_eps",
            "model.decoder.norm.eps model.decoder.attention.norm.eps",
            float,
            1e-6,
        ),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "qwen3.yaml"

    def _bias(self, config: Config) -> bool | str:
        return Llama._bias(self, config)
