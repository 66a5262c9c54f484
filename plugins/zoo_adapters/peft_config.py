"""The options of peft's ``adapter_config.json``: those that are read, and the others' defaults."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from zoo import ZooError

_PATTERN = re.compile(r"\^?(?:[\w-]|\\\.|\\d\+|\[0-9\]\+|\.[*+]?|\([\w|-]+\))+\$?")
"""Regular expressions for modules that are read: names, with few parts that match several ones."""
_MAX_PATTERN, _MAX_PARTS = 500, 4

_INFORMATION = {
    *("task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path"),
    *("revision", "inference_mode", "target_modules", "modules_to_save", "fan_in_fan_out"),
    *("exclude_modules", "layers_to_transform", "layers_pattern", "parent_library"),
}
"""Keys that describe the model or select modules; the tensors of the file show which."""
_LORA_DEFAULTS: Mapping[str, Any] = {
    "bias": "none",
    "init_lora_weights": True,
    "megatron_config": None,
    "megatron_core": "megatron.core",
    "trainable_token_indices": None,
    "loftq_config": {},
    "eva_config": None,
    "corda_config": None,
    "lora_ga_config": None,
    "velora_config": None,
    "alora_invocation_tokens": None,
    "use_qalora": False,
    "qalora_group_size": 16,
    "monteclora_config": None,
    "layer_replication": None,
    "runtime_config": {"ephemeral_gpu_offload": False},
    "lora_bias": False,
    "target_parameters": None,
    "use_bdlora": None,
    "arrow_config": None,
    "kasa_config": None,
    "ensure_weight_tying": False,
}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "LORA": _LORA_DEFAULTS,
    "IA3": {"init_ia3_weights": True},
}
_HARMLESS: Mapping[str, tuple[Any, ...]] = {
    "init_lora_weights": (True, False, "gaussian", "orthogonal"),
    "init_ia3_weights": (True, False),
    "target_parameters": ([],),
    "trainable_token_indices": ([], {}),
    "layer_replication": ([],),
    "merge_weights": (True, False),
}
"""Other values that do not change the outputs: of the start of a training, or of nothing."""


def check_config(config: Mapping[str, Any], used: Collection[str]) -> None:
    """Raise ZooError, with the key, for an option that is unknown or has an unsupported value.

    Args:
        used: the keys that the caller reads.
    """
    defaults = _DEFAULTS[config["peft_type"]]
    for key, value in config.items():
        if key in used or key in _INFORMATION:
            continue
        if value is None or value in _HARMLESS.get(key, ()):
            continue
        if key not in defaults:
            raise ZooError(f"adapter_config.json: key '{key}' is not supported")
        if value != defaults[key]:
            raise ZooError(f"adapter_config.json: {key} is {value!r}, which is not supported")


def number(config: Mapping[str, Any], key: str, default: float) -> float:
    """Return a number of the config."""
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ZooError(f"adapter_config.json: {key} is {value!r}; expected a number")
    return value


def module_values(
    config: Mapping[str, Any], key: str, modules: Collection[str], default: float
) -> dict[str, float]:
    """Return the value of each module: that of the first pattern of an option that matches it.

    As in peft, a pattern is a regular expression for a module, or for the end of its name.

    Raises:
        ZooError: if a pattern is not supported, or matches no module.
    """
    patterns = config.get(key) or {}
    if not isinstance(patterns, Mapping):
        raise ZooError(f"adapter_config.json: {key} is {patterns!r}; expected an object")
    values = dict.fromkeys(modules, default)
    for pattern in reversed(list(patterns)):
        repeated = len(re.findall(r"[*+]", pattern))
        long = len(pattern) > _MAX_PATTERN or repeated > _MAX_PARTS
        if long or not _PATTERN.fullmatch(pattern):
            raise ZooError(
                f"adapter_config.json: {key} has the pattern '{pattern[:80]}', which is not "
                "supported; expected names of modules"
            )
        expression = re.compile(rf"(.*\.)?({pattern})$")
        matched = [module for module in modules if expression.match(module)]
        if not matched:
            raise ZooError(
                f"adapter_config.json: {key} has '{pattern[:80]}', which matches no module"
            )
        values |= dict.fromkeys(matched, number(patterns, pattern, default))
    return values


def tensor_pairs(
    layers: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> dict[str, tuple[Any, ...]]:
    """Return the tensors with these names of each module; raise ZooError if there are others."""
    found = {}
    for module, tensors in layers.items():
        if set(tensors) != set(names):
            raise ZooError(
                f"{module} has the tensors {', '.join(sorted(tensors))}; expected "
                f"{', '.join(names)}"
            )
        found[module] = tuple(tensors[name] for name in names)
    return found
