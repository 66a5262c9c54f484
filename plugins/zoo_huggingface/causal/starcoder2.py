"""StarCoder2: Llama with LayerNorm, and a feed-forward network without a gate."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.windowed import WindowedLlama
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)

_REPLACED = ("rms_norm_eps", "hidden_act", "initializer_range")


class Starcoder2(WindowedLlama):
    """StarCoder2 (Lozhkov et al. 2024); its tokenizer adds no start token."""

    name = "starcoder2"
    model_classes = ("Starcoder2ForCausalLM",)
    map_name = "starcoder2"
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    default_kv_heads = 2
    tied_by_default = True
    template = language_model_template(
        transformer_template(feed_forward={}, norm={"place": "pre"}, position={"type": "rotary"})
    )
    fields = (
        *(field for field in Llama.fields if field.key not in _REPLACED),
        activation_field("hidden_act", "decoder", "gelu_pytorch_tanh"),
        ConfigField("norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("residual_dropout", "model.decoder.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.018042),
    )
    used_keys = (*WindowedLlama.used_keys, "use_bias")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"the dropout of the decoder is applied instead": "embedding_dropout"}),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("attention_bias", False, "use_bias is the key of StarCoder2"),
        RequiredValue("mlp_bias", False, "use_bias is the key of StarCoder2"),
        RequiredValue("mlp_type", "default", "only networks without a gate are supported"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        spec["model"]["decoder"]["feed_forward"]["bias"] = self._bias(config)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        del config["attention_bias"], config["mlp_bias"]
        config["use_bias"] = get_path(spec, "model.decoder.attention.bias") is True

    def _bias(self, config: Config) -> bool | str:
        bias: bool = get_value(config, "use_bias", bool, True)
        return bias
