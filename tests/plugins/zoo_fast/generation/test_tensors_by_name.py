"""Memories and states as tensors by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from zoo.plugin import Memory, State
from zoo_fast.generation.tensors_by_name import (
    find_change,
    flatten_memory,
    flatten_state,
    structure_of,
    unflatten_memory,
    unflatten_state,
)


@dataclass(frozen=True)
class CachedState(State):
    """A state with further tensors and a number."""

    cache: Mapping[str, Tensor] = field(default_factory=dict)
    layers: int = 2


def test_memory():
    memory = Memory(
        torch.ones(1, 2, 3), torch.ones(1, 2).bool(), torch.ones(1, 3), {"h": torch.ones(1)}
    )
    assert unflatten_memory(flatten_memory(memory)) == memory


def test_state():
    state = State({"at": torch.ones(1)}, {"0.keys": torch.zeros(2)})
    assert unflatten_state(flatten_state(state), structure_of(state)) == state


def test_a_subclass_keeps_its_class_and_other_fields():
    state = CachedState({"at": torch.ones(1)}, cache={"keys": torch.zeros(2)}, layers=3)
    structure = structure_of(state)
    assert (structure.per_hypothesis, structure.cache, structure.layers) == ({}, {}, 3)
    assert set(flatten_state(state)) == {"state.per_hypothesis.at", "state.cache.keys"}
    found = unflatten_state(flatten_state(state) | {"logits": torch.ones(1)}, structure)
    assert type(found) is CachedState
    assert found == state


def test_changes_of_a_state_other_than_of_values():
    state = CachedState({"at": torch.ones(1)}, cache={"keys": torch.zeros(2)}, layers=3)
    structure, tensors = structure_of(state), flatten_state(state) | {"logits": torch.ones(1)}
    keys = "state.cache.keys"
    changes = {
        "the state is a State, not a CachedState": State(state.per_hypothesis),
        f"the state has other tensors: {keys}, state.cache.values": replace(
            state, cache={"values": torch.zeros(2)}
        ),
        f"the shape of {keys} changes from torch.Size([2]) to torch.Size([3])": replace(
            state, cache={"keys": torch.zeros(3)}
        ),
        f"the dtype of {keys} changes from torch.float32 to torch.float64": replace(
            state, cache={"keys": torch.zeros(2, dtype=torch.float64)}
        ),
        "the field layers of the state changes": replace(state, layers=4),
    }
    for change, after in changes.items():
        assert find_change(structure, tensors, after) == change
    same = replace(state, cache={"keys": torch.ones(2)}, layers=int("3"))
    assert find_change(structure, tensors, same) is None
    tensor = replace(state, layers=torch.ones(2))  # a field that could be a tensor is never equal
    assert find_change(structure_of(tensor), tensors, replace(tensor, layers=torch.ones(2)))
