"""Values of a stored checkpoint, checked before a run uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from zoo.interfaces import Schedule
from zoo.interfaces.tensors import TensorMeta
from zoo.training.random_state import get_random_state, set_random_state
from zoo.training.stored_checkpoint import STATE_FILE, TENSOR_FILE, StoredCheckpoint


def read_weights(
    stored: StoredCheckpoint, name: str, current: Tensor, *, optional: bool
) -> Tensor | None:
    """Return a tensor of the shape and dtype of another.

    Args:
        optional: return None if there is no tensor of this name.
    """
    meta = stored.tensors.metas.get(name)
    if meta is None and optional:
        return None
    expected = TensorMeta.of(current)
    if meta != expected:
        found = f"is {meta.dtype} {list(meta.shape)}" if meta else "is missing"
        shape = f"{expected.dtype} {list(expected.shape)}"
        raise stored.damage(TENSOR_FILE, f"tensor '{name}' {found}, expected {shape}")
    return stored.tensors.read(name)


def restore_random_state(stored: StoredCheckpoint, prefix: str) -> bool:
    """Set the random generators from the tensors with a prefix; return whether there are any."""
    entries = [name for name in stored.tensors.metas if name.startswith(prefix)]
    random = {name.removeprefix(prefix): stored.tensors.read(name).clone() for name in entries}
    if not random:
        return False
    for key, tensor in get_random_state().items():
        found = random.get(key)
        if (found is None and key != "cuda") or (
            found is not None and TensorMeta.of(found) != TensorMeta.of(tensor)
        ):
            raise stored.damage(TENSOR_FILE, f"the random state '{key}' is not valid")
    try:
        set_random_state(random)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise stored.damage(TENSOR_FILE, f"the random state is not valid ({error})") from None
    return True


def restore_schedule(
    stored: StoredCheckpoint, schedule: Schedule, state: Mapping[str, Any]
) -> None:
    """Set the state of a schedule."""
    try:
        schedule.restore(state)
        schedule.factor(1)
    except (LookupError, TypeError, ValueError) as error:
        reason = f"the state of schedule '{schedule.name}' is not valid ({error})"
        raise stored.damage(STATE_FILE, reason) from None
