"""Qwen2-MoE: Qwen2 with experts, one of which is shared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo.plugin import TensorReader
from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.experts import (
    EXPERT,
    IGNORED,
    NETWORK,
    are_fused,
    experts_fields,
    experts_template,
    read_map,
)
from zoo_huggingface.causal.layer_kinds import layer_kinds
from zoo_huggingface.causal.qwen2 import Qwen2
from zoo_huggingface.config_fields import (
    ConfigField,
    config_error,
    get_list,
    get_path,
    get_value,
)

SOFTMAX = ConfigField(
    "norm_topk_prob", f"{NETWORK}.softmax", bool, False, {False: "all", True: "selected"}
)


class Qwen2Moe(Qwen2):
    """Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024); some layers may have one network instead."""

    name = "qwen2_moe"
    model_classes = ("Qwen2MoeForCausalLM",)
    default_kv_heads = 16
    default_hidden: ClassVar[int] = 5632
    """The default of ``intermediate_size``, of layers without experts."""
    network = EXPERT
    template = experts_template(
        Qwen2.template, shared={"gated": True, "bias": False}, shared_gate=True
    )
    fields: ClassVar[tuple[ConfigField, ...]] = experts_fields(
        Qwen2.fields,
        count=60,
        selected=4,
        intermediate_size=ConfigField("moe_intermediate_size", f"{EXPERT}.hidden", default=1408),
        num_local_experts=ConfigField("num_experts", f"{NETWORK}.count", default=60),
        shared_expert_intermediate_size=ConfigField(
            "shared_expert_intermediate_size", f"{NETWORK}.shared.hidden", default=5632
        ),
        norm_topk_prob=SOFTMAX,
    )
    used_keys = (
        *Qwen2.used_keys,
        *("decoder_sparse_step", "intermediate_size", "mlp_only_layers", "qkv_bias"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {**Qwen2.ignored_keys, **IGNORED}

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        extended = super().extend_config(config, folder, weights)
        return {**extended, "fused_experts": are_fused(weights)}

    def map(self, config: Config) -> Any:
        return read_map(MAPS / f"{self.name}.yaml", config)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        network = get_path(spec, NETWORK)
        if "shared" in network:
            network["shared"]["activation"] = network["expert"]["activation"]

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        networks = [kind.get("feed_forward") for kind in layer_kinds(spec)]
        dense = [index for index, network in enumerate(networks) if network is not None]
        config |= {"mlp_only_layers": dense, "decoder_sparse_step": 1}
        hidden = next((network["hidden"] for network in networks if network is not None), None)
        config["intermediate_size"] = hidden or config.get("intermediate_size", self.default_hidden)
        self._write_bias(config, spec)

    def _write_bias(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["qkv_bias"] = get_path(spec, "model.decoder.attention.bias") == "qkv"

    def _kinds(self, spec: Mapping[str, Any], config: Config) -> list[dict[str, Any]]:
        kinds = super()._kinds(spec, config)
        only = get_list(config, "mlp_only_layers", int)
        step = get_value(config, "decoder_sparse_step", int, 1)
        if step < 1:
            raise config_error("decoder_sparse_step", step, "it should be at least 1")
        hidden = get_value(config, "intermediate_size", int, self.default_hidden)
        dense = {**get_path(spec, EXPERT), "hidden": hidden}
        for index, kind in enumerate(kinds):
            if index in only or (index + 1) % step:
                kind["feed_forward"] = dense
        return kinds

    def _slides(self, index: int, first: int) -> bool:
        return index % 2 == 0 and index < first

    def _bias(self, config: Config) -> bool | str:
        return "qkv" if get_value(config, "qkv_bias", bool, True) else False
