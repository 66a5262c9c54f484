"""Memories and states of decoders as tensors by name, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from torch import Tensor

from zoo.interfaces import Memory, State


def flatten_state(state: State) -> dict[str, Tensor]:
    """Return the tensors of a state by name."""
    return {
        f"{field.name}.{name}": tensor
        for field in fields(state)
        for name, tensor in getattr(state, field.name).items()
    }


def unflatten_state(tensors: Mapping[str, Tensor]) -> State:
    """Return the state with these tensors; other names are ignored."""
    parts: dict[str, dict[str, Tensor]] = {field.name: {} for field in fields(State)}
    for full_name, tensor in tensors.items():
        field, _, name = full_name.partition(".")
        if field in parts:
            parts[field][name] = tensor
    return State(**parts)


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
