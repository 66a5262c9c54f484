"""GPT-OSS: Llama with experts, attention sinks, and windows in every other layer."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.experts import (
    EXPERT,
    IGNORED,
    experts_fields,
    experts_template,
    with_local_experts,
)
from zoo_huggingface.causal.layer_kinds import (
    read_window,
    shortest_pattern,
    windowed_layers,
    write_layer_types,
)
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import language_model_template, transformer_template

_WINDOW = 128
"""The default of ``sliding_window``."""
_ROPE = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
"""The default of ``rope_parameters``."""


class GptOss(Llama):
    """GPT-OSS (OpenAI 2025); its tokenizer adds no start token."""

    name = "gpt_oss"
    model_classes = ("GptOssForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    default_kv_heads = 8
    default_head_dim = 64
    rope = Rope(theta=150000.0)
    network = EXPERT
    template = experts_template(
        language_model_template(
            transformer_template(
                attention={"scorer": "scaled-dot", "align": {"type": "soft", "sink": True}},
                feed_forward={"type": "clamped-swiglu", "bias": True},
                norm={"kind": "rms", "place": "pre"},
                position={"type": "rotary"},
            )
        ),
        router_bias=True,
    )
    fields = experts_fields(
        Llama.fields,
        count=128,
        selected=4,
        hidden_act=None,
        rms_norm_eps=ConfigField("rms_norm_eps", "model.decoder.norm.eps", float, 1e-5),
        swiglu_alpha=ConfigField("swiglu_alpha", f"{EXPERT}.alpha", float, 1.702),
        swiglu_limit=ConfigField("swiglu_limit", f"{EXPERT}.bound", float, 7.0),
    )
    used_keys = (*Llama.used_keys, "layer_types", "num_experts", "sliding_window")
    aliases: ClassVar[Mapping[str, str]] = {"experts_per_token": "num_experts_per_tok"}
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **IGNORED,
        **ignored_keys({"transformers does not read it": "hidden_act initial_context_length"}),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", True, "its experts have a bias"),
    )

    def spec(self, config: Config) -> dict[str, Any]:
        return super().spec(with_local_experts(config))

    def map(self, config: Config) -> Any:
        return MAPS / "gpt_oss.yaml"

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        if not config.get("rope_scaling") and config.get("rope_parameters") is None:
            config = {**config, "rope_parameters": _ROPE}
        super().update_spec(spec, {**config, "mlp_bias": True})
        decoder = spec["model"]["decoder"]
        default = [index % 2 == 0 for index in range(decoder["layers"])]
        window = read_window(config, _WINDOW)
        kinds = windowed_layers(config, decoder["layers"], default, window)
        decoder["pattern"] = shortest_pattern(kinds)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        window = config.get("sliding_window", _WINDOW)
        write_layer_types(config, spec)
        del config["use_sliding_window"], config["mlp_bias"]
        config["sliding_window"] = config["sliding_window"] or window

    def _bias(self, config: Config) -> bool | str:
        bias: bool = get_value(config, "attention_bias", bool, True)
        return bias
