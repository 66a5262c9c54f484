"""Phi-3: Llama with joined projections in the file."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import ConfigField, RequiredValue, config_error, get_value
from zoo_huggingface.config_keys import ignored_keys


class Phi3(Llama):
    """Phi-3, 3.5 and 4 (Abdin et al. 2024); its tokenizer adds no start token."""

    name = "phi3"
    model_classes = ("Phi3ForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    used_keys = (*Llama.used_keys, "sliding_window")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"transformers does not read it": "embd_pdrop"}),
    }
    fields = (
        *(field for field in Llama.fields if field.key != "rms_norm_eps"),
        ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.0),
    )
    required_values = (
        *Llama.required_values,
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

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        window = config.get("sliding_window")
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
