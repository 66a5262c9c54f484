"""Qwen3-MoE: Qwen3 with experts."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.experts import (
    EXPERT,
    IGNORED,
    experts_fields,
    experts_template,
    with_local_experts,
)
from zoo_huggingface.causal.layer_kinds import only_window
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.query_key_norm import normed_fields, normed_template
from zoo_huggingface.causal.qwen2_moe import SOFTMAX, Qwen2Moe
from zoo_huggingface.config_fields import ConfigField
from zoo_huggingface.config_keys import ignored_keys


class Qwen3Moe(Qwen2Moe):
    """Qwen3-MoE (Yang et al. 2025)."""

    name = "qwen3_moe"
    model_classes = ("Qwen3MoeForCausalLM",)
    default_kv_heads = 4
    default_hidden = 6144
    template = experts_template(normed_template(over="head", place="pre"))
    fields = experts_fields(
        normed_fields(1e-6),
        count=128,
        selected=8,
        intermediate_size=ConfigField("moe_intermediate_size", f"{EXPERT}.hidden", default=768),
        norm_topk_prob=SOFTMAX,
    )
    used_keys = (
        *Llama.used_keys,
        *("decoder_sparse_step", "intermediate_size", "mlp_only_layers", "num_experts"),
        *("sliding_window", "use_sliding_window"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **IGNORED,
        **ignored_keys({"transformers does not read it": "max_window_layers"}),
    }

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(with_local_experts(config))

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        del config["layer_types"]
        config["num_experts"] = config["num_local_experts"]  # transformers 4 reads this name
        window = only_window(spec)
        config |= {"use_sliding_window": window is not None, "sliding_window": window}

    def _write_bias(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        """`attention_bias`, which Llama has, is that of all projections."""

    def _slides(self, index: int, first: int) -> bool:
        return True

    def _bias(self, config: Config) -> bool | str:
        return Llama._bias(self, config)
