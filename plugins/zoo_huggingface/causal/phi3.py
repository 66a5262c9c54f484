"""Phi-3: Llama with joined projections in the file."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.causal.windowed import WindowedLlama
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_value
from zoo_huggingface.config_keys import ignored_keys


class Phi3(WindowedLlama):
    """Phi-3, 3.5 and 4 (Abdin et al. 2024); its tokenizer adds no start token."""

    name = "phi3"
    model_classes = ("Phi3ForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **WindowedLlama.ignored_keys,
        **ignored_keys({"transformers does not read it": "embd_pdrop"}),
    }
    fields = (
        *(field for field in WindowedLlama.fields if field.key != "rms_norm_eps"),
        ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.0),
    )
    required_values = (
        *WindowedLlama.required_values,
        RequiredValue("attention_bias", False, "Phi-3 has no bias in its projections"),
        RequiredValue("mlp_bias", False, "Phi-3 has no bias in its feed-forward layers"),
    )
    rope = Rope(
        part=1.0, types=("default", "longrope"), names={"su": "longrope", "yarn": "longrope"}
    )

    def map(self, config: Config) -> Any:
        tensor_map = yaml.safe_load((MAPS / "phi3.yaml").read_text(encoding="utf-8"))
        heads = get_value(config, "num_attention_heads", int)
        width = get_value(config, "hidden_size", int)
        head_dim = get_value(config, "head_dim", int, None) or width // heads
        kv_heads = get_value(config, "num_key_value_heads", int, None) or heads
        tensor_map["values"] = {"queries": heads * head_dim, "keys": kv_heads * head_dim}
        return tensor_map
