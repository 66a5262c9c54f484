"""Memories, states of decoders and searches as tensors by name, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from zoo.plugin import Memory, SearchConfig, SearchState, State
from zoo_fast.generation.fixed_search import FixedSearch

STATE = "state."
"""The names of the tensors of a decoder's state start with it."""
_SEARCH_FIELDS = ("tokens", "scores", "finished", "num_generated")
_SAMPLER_STATE = "sampler_state."


def flatten_state(state: State) -> dict[str, Tensor]:
    """Return the tensors of a state by name: those of all fields that are mappings."""
    return {
        f"{STATE}{field}.{name}": tensor
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
        if full_name.startswith(STATE):
            field, _, name = full_name.removeprefix(STATE).partition(".")
            parts[field][name] = tensor
    return replace(structure, **parts)


def find_change(before: State, tensors: Mapping[str, Tensor], after: State) -> str | None:
    """Return what a state has other than values of tensors that another one has not, or None.

    Args:
        before: `structure_of` the other state.
        tensors: those of the other state by name; other names are ignored.
    """
    if type(after) is not type(before):
        return f"the state is a {type(after).__name__}, not a {type(before).__name__}"
    own = {name: tensor for name, tensor in tensors.items() if name.startswith(STATE)}
    new = flatten_state(after)
    if own.keys() != new.keys():
        changed = sorted(own.keys() ^ new.keys())
        return f"the state has other tensors: {', '.join(changed)}"
    for name, tensor in new.items():
        for what in ("shape", "dtype"):
            was, now = getattr(own[name], what), getattr(tensor, what)
            if was != now:
                return f"the {what} of {name} changes from {was} to {now}"
    for field in fields(after):
        if not _is_equal(getattr(before, field.name), getattr(after, field.name)):
            return f"the field {field.name} of the state changes"
    return None


def _is_equal(before: Any, after: Any) -> bool:
    """Whether two fields are certainly equal; mappings contain tensors, which are ignored."""
    if before is after or (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return True
    is_plain = isinstance(before, (bool, int, float, str))
    return is_plain and type(before) is type(after) and bool(before == after)


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


def flatten_search(search: SearchState) -> dict[str, Tensor]:
    """Return the tensors of a search by name."""
    tensors: dict[str, Tensor] = {name: getattr(search, name) for name in _SEARCH_FIELDS}
    tensors |= flatten_sampler(search.sampler_state)
    if isinstance(search, FixedSearch):
        tensors["cur_len"] = search.cur_len
    return tensors


def flatten_sampler(sampler_state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a sampler as `flatten_search` names them."""
    return {_SAMPLER_STATE + name: tensor for name, tensor in sampler_state.items()}


def unflatten_search(
    tensors: Mapping[str, Tensor], task: SearchConfig, cur_len: int | Tensor
) -> SearchState:
    """Return the search with these tensors; other names are ignored.

    It is a `FixedSearch` if the length is a tensor.
    """
    given: dict[str, Any] = {name: tensors[name] for name in _SEARCH_FIELDS}
    given["sampler_state"] = {
        name.removeprefix(_SAMPLER_STATE): tensor
        for name, tensor in tensors.items()
        if name.startswith(_SAMPLER_STATE)
    }
    if isinstance(cur_len, Tensor):
        return FixedSearch(task, cur_len=cur_len, **given)
    return SearchState(task, cur_len=cur_len, **given)
