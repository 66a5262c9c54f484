"""Qwen3: Qwen2 with norms of queries and keys instead of biases."""

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.query_key_norm import normed_fields, normed_template
from zoo_huggingface.causal.qwen2 import Qwen2


class Qwen3(Qwen2):
    """Qwen3 (Yang et al. 2025)."""

    name = "qwen3"
    model_classes = ("Qwen3ForCausalLM", "Qwen3Model")
    map_name = "qwen3"
    default_kv_heads = 32
    default_head_dim = 128
    template = normed_template(over="head", place="pre")
    fields = normed_fields(1e-6)

    def _bias(self, config: Config) -> bool | str:
        return Llama._bias(self, config)
