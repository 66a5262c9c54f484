"""Experts in configs, specs and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from zoo.plugin import TensorReader
from zoo_huggingface.config_fields import ConfigField, config_error, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import SpecTemplate

Config = Mapping[str, Any]
NETWORK = "model.decoder.feed_forward"
EXPERT = f"{NETWORK}.expert"
"""The path of an expert in a spec."""
IGNORED = ignored_keys(
    {
        "it affects training only": "router_aux_loss_coef router_jitter_noise",
        "it selects which outputs are returned": "output_router_logits",
    }
)
"""Keys of routers that do not change the outputs, and the reason."""


def experts_template(template: SpecTemplate, **params: Any) -> SpecTemplate:
    """Return a template whose decoder has experts instead of feed-forward networks.

    Args:
        params: further parameters of the part 'experts'.
    """
    model = template["model"]
    network = {"type": "experts", "expert": model["decoder"]["feed_forward"], **params}
    decoder = {**model["decoder"], "feed_forward": network}
    return {**template, "model": {**model, "decoder": decoder}}


def experts_fields(
    fields: Sequence[ConfigField], *, count: int, selected: int, **changed: ConfigField | None
) -> tuple[ConfigField, ...]:
    """Return fields of a Llama, with those of the network moved to the experts.

    Args:
        count: default of the number of experts, which `read_count` reads.
        selected: default of the number of experts of a token.
        changed: other fields by their keys; None to leave one out.
    """
    moved = {
        field.key: replace(field, paths=field.paths.replace(f"{NETWORK}.", f"{EXPERT}."))
        for field in fields
    }
    moved["num_experts_per_tok"] = ConfigField(
        "num_experts_per_tok", f"{NETWORK}.selected", default=selected
    )
    moved["num_local_experts"] = ConfigField("num_local_experts", f"{NETWORK}.count", default=count)
    return tuple(field for field in {**moved, **changed}.values() if field is not None)


def with_local_experts(config: Config) -> Config:
    """Return a config that has ``num_local_experts`` if it has the other name, ``num_experts``."""
    if "num_experts" not in config:
        return config
    count = get_value(config, "num_experts", int)
    if config.get("num_local_experts", count) != count:
        raise config_error("num_experts", count, "it should equal 'num_local_experts'")
    return {**config, "num_local_experts": count}


def are_fused(weights: TensorReader) -> bool:
    """Return whether a file has one tensor of all experts of a layer, as transformers in memory."""
    return any(name.endswith(".mlp.experts.gate_up_proj") for name in weights.metas)


def read_map(path: Path, config: Config) -> Path | dict[str, Any]:
    """Return a map, with the names of `are_fused` if the file of a config has them: all experts of
    a layer are one tensor, in which `up` follows `gate`."""
    if not config.get("fused_experts"):
        return path
    tensor_map: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    experts = "decoder.blocks.{n}.feed_forward.experts"
    tensor_map["rename"] = {
        ours: theirs.replace(".block_sparse_moe.", ".mlp.")
        for ours, theirs in tensor_map["rename"].items()
        if not ours.startswith(experts)
    }
    tensor_map["values"] = {"experts": f"{NETWORK}.count", "width": "model.embedding.dim"}
    shapes = {
        "gate_up": ("{p:gate|up}", ["$experts", -1, "$width"], [-1, "$width"]),
        "down": ("down", ["$experts", "$width", -1], ["$experts*$width", -1]),
    }
    tensor_map["convert"] = [
        {
            "theirs": f"model.layers.{{n}}.mlp.experts.{name}_proj",
            "ours": f"{experts}.{{e:0..$experts}}.{layers}.weight",
            "do": [{"reshape": {"theirs": theirs, "ours": ours}}, "split"],
        }
        for name, (layers, theirs, ours) in shapes.items()
    ]
    return tensor_map
