"""The environment variables that launchers such as torchrun set in each process of a group."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

from zoo.errors import ZooError, one_line, truncate

_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_NEEDED = ("RANK", "MASTER_ADDR", "MASTER_PORT")
_OWN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
_ADVICE = "start them with torchrun or 'accelerate launch'"


def launched_processes() -> int:
    """Return the number of processes that a launcher started together; 1 without a launcher."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    values = [os.environ.get(name, "") for name in _SIZES]
    return max((int(value) for value in values if value.isdecimal()), default=1)


@contextlib.contextmanager
def group_variables() -> Iterator[None]:
    """Form the group of processes inside the block, as the variables of the launcher describe it.

    Without a launcher, variables such as ``RANK`` are hidden: schedulers and shells may set them.

    Raises:
        ZooError: if a variable is missing, or the processes cannot connect.
    """
    count = launched_processes()
    if count <= 1:
        with hidden_variables(_OWN):
            yield
        return
    missing = [name for name in _NEEDED if not os.environ.get(name)]
    if "WORLD_SIZE" in os.environ and missing:
        raise ZooError(
            f"WORLD_SIZE is {count}, but {', '.join(missing)} missing, so the processes cannot "
            f"form a group; {_ADVICE}, or unset WORLD_SIZE"
        )
    try:
        yield
    except RuntimeError as error:
        reason = truncate(one_line(str(error)), 200)
        raise ZooError(f"the {count} processes cannot form a group: {reason}; {_ADVICE}") from None


def check_group(world: int) -> None:
    """Raise ZooError if a launcher started more processes than there are in the group."""
    count = launched_processes()
    if count > 1 and count != world:
        raise ZooError(
            f"{count} processes were started together, but they do not form a group on this "
            "device, so each would train alone; use --device cpu, or start one process"
        )


@contextlib.contextmanager
def hidden_variables(names: tuple[str, ...]) -> Iterator[None]:
    """Remove environment variables inside the block."""
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)
