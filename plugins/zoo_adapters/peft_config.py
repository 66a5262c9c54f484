"""The options of peft's ``adapter_config.json``: those that are read, and the others' defaults."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from zoo import ZooError
from zoo.plugin import truncate

_PATTERN = re.compile(r"\^?(?:[\w-]|\\\.|\\d\+|\[0-9\]\+|\.[*+]?|\([\w|-]+\))+\$?")
"""Regular expressions for modules that are read: names, with few parts that match several ones."""
_MAX_PATTERN, _MAX_PARTS, _MAX_WILDCARDS = 500, 4, 2
_MAX_PATTERNS = 1000
"""Of one option, unless there are more modules."""
_MAX_NUMBER = 1e9

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
            raise ZooError(f"adapter_config.json: key {_shown(key)} is not supported")
        if value != defaults[key]:
            raise ZooError(f"adapter_config.json: {key} is {_shown(value)}, which is not supported")


def number(config: Mapping[str, Any], key: str, default: float) -> float:
    """Return a number of the config that float32 can have."""
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ZooError(f"adapter_config.json: {key} is {_shown(value)}; expected a number")
    if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise ZooError(
            f"adapter_config.json: {key} is {_shown(value)}; at most {_MAX_NUMBER:g} is allowed"
        )
    return value


def positive(config: Mapping[str, Any], key: str, default: float) -> float:
    """Return a number above 0 of the config."""
    value = number(config, key, default)
    if value <= 0:
        raise ZooError(f"adapter_config.json: {key} is {value}; expected a number above 0")
    return value


def integer(config: Mapping[str, Any], key: str, default: int) -> int:
    """Return an integer above 0 of the config."""
    value = positive(config, key, default)
    if not isinstance(value, int):
        raise ZooError(f"adapter_config.json: {key} is {value}; expected an integer")
    return value


def boolean(config: Mapping[str, Any], key: str) -> bool:
    """Return an option that is on or off; default: off."""
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise ZooError(f"adapter_config.json: {key} is {_shown(value)}; expected true or false")
    return bool(value)


def _shown(value: object) -> str:
    return truncate(repr(value), 80)


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
        raise ZooError(f"adapter_config.json: {key} is {_shown(patterns)}; expected an object")
    max_patterns = max(_MAX_PATTERNS, len(modules))
    if len(patterns) > max_patterns:
        raise ZooError(
            f"adapter_config.json: {key} has {len(patterns):,} patterns; at most "
            f"{max_patterns:,} are supported"
        )
    values = dict.fromkeys(modules, default)
    for pattern in reversed(list(patterns)):
        repeated, wildcards = (len(re.findall(each, pattern)) for each in (r"[*+]", r"\.[*+]"))
        is_slow = repeated > _MAX_PARTS or wildcards > _MAX_WILDCARDS
        if len(pattern) > _MAX_PATTERN or is_slow or not _PATTERN.fullmatch(pattern):
            raise ZooError(
                f"adapter_config.json: {key} has the pattern {_shown(pattern)}, which is not "
                "supported; expected names of modules"
            )
        expression = re.compile(rf"(.*\.)?({pattern})$")
        matched = [module for module in modules if expression.match(module)]
        if not matched:
            raise ZooError(
                f"adapter_config.json: {key} has '{pattern[:80]}', which matches no module"
            )
        values |= dict.fromkeys(matched, positive(patterns, pattern, default))
    return values


def tensor_pairs(
    layers: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> dict[str, tuple[Any, ...]]:
    """Return the matrices with these names of each module.

    Raises:
        ZooError: if there are others, or one is not a matrix with rows and columns.
    """
    found = {}
    for module, tensors in layers.items():
        if set(tensors) != set(names):
            raise ZooError(
                f"{module} has the tensors {truncate(', '.join(sorted(tensors)), 200)}; expected "
                f"{', '.join(names)}"
            )
        for name in names:
            if tensors[name].dim() != 2 or not tensors[name].numel():
                shape = list(tensors[name].shape)
                raise ZooError(f"{module}: {name} has the shape {shape}, which is not a matrix")
        found[module] = tuple(tensors[name] for name in names)
    return found
