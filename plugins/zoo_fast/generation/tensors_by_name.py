"""Memories and states of decoders as tensors by name, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from torch import Tensor

from zoo.plugin import Memory, State


def flatten_state(state: State) -> dict[str, Tensor]:
    """Return the tensors of a state by name: those of all fields that are mappings."""
    return {
        f"{field}.{name}": tensor
        for field in _mappings(state)
        for name, tensor in getattr(state, field).items()
    }


def structure_of(state: State) -> State:
    """Return the state without its tensors, for `unflatten_state`."""
    return replace(state, **{field: {} for field in _mappings(state)})


def unflatten_state(tensors: Mapping[str, Tensor], structure: State) -> State:
    """Return the state of a structure with these tensors; other names are ignored."""
    parts: dict[str, dict[str, Tensor]] = {field: {} for field in _mappings(structure)}
    for full_name, tensor in tensors.items():
        field, _, name = full_name.partition(".")
        if field in parts:
            parts[field][name] = tensor
    return replace(structure, **parts)


def _mappings(state: State) -> list[str]:
    return [each.name for each in fields(state) if isinstance(getattr(state, each.name), Mapping)]


def flatten_memory(memory: Memory) -> dict[str, Tensor]:
    """Return the tensors of a memory by name."""
    tensors = {"states": memory.states, "mask": memory.mask, "summary": memory.summary}
    if memory.tokens is not None:
        tensors["tokens"] = memory.tokens
    return tensors | {f"carry.{name}": tensor for name, tensor in memory.carry.items()}


def unflatten_memory(tensors: Mapping[str, Tensor]) -> Memory:
    """Return the memory with these tensors; other names are ignored."""
    return Memory(
        tensors["states"],
        tensors["mask"],
        tensors["summary"],
        {n.removeprefix("carry."): t for n, t in tensors.items() if n.startswith("carry.")},
        tensors.get("tokens"),
    )
