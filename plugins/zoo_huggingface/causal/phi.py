"""Phi: parallel sublayers with one norm, rotation of a part of each head."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)

_REPLACED = ("rms_norm_eps", "hidden_act")


class Phi(Llama):
    """Phi-1, 1.5 and 2 (Li et al. 2023); its tokenizer adds no start token."""

    name = "phi"
    model_classes = ("PhiForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    rope = Rope(part=0.5)
    template = language_model_template(
        transformer_template(
            norm={"place": "pre"}, position={"type": "rotary"}, sublayers="parallel-shared"
        )
    )
    fields = (
        *(field for field in Llama.fields if field.key not in _REPLACED),
        activation_field("hidden_act", "decoder", "gelu_new"),
        ConfigField("layer_norm_eps", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.0),
    )
    used_keys = (*(key for key in Llama.used_keys if key != "head_dim"), "qk_layernorm")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"the dropout of the decoder is applied instead": "embd_pdrop"}),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("attention_bias", True, "the projections of Phi have a bias"),
        RequiredValue("mlp_bias", True, "the feed-forward layers of Phi have a bias"),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "phi.yaml"

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        decoder["feed_forward"]["bias"] = decoder["output"]["bias"] = True
        if get_value(config, "qk_layernorm", bool, False):
            decoder["attention"]["norm"] = {"kind": "layer", "eps": decoder["norm"]["eps"]}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        del config["attention_bias"], config["mlp_bias"], config["head_dim"]
        config["qk_layernorm"] = get_path(spec, "model.decoder.attention.norm") is not None

    def _bias(self, config: Config) -> bool | str:
        return True
