"""The processes and devices of a run, by Hugging Face Accelerate."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from zoo.errors import MissingExtra, ZooError, one_line, truncate
from zoo.spec.composition import resolve_device
from zoo.training.local_step import autocast_to
from zoo.training.sharding import set_gradient_sync, shard_model

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


Parallel = Literal["ddp", "fsdp"]

_TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others, for example while one of them reads a file."""
_FSDP = "ACCELERATE_USE_FSDP"


class Processes:
    """This process, its device and the other processes of the run.

    Accelerate starts the process group, places the model, and wraps it in
    DistributedDataParallel. FSDP2 is torch's `fully_shard`, called directly on every device:
    Accelerate 1.15 ignores its FSDP plugin on the CPU and wraps the model in
    DistributedDataParallel without a warning, and one path for all devices can be tested on the
    CPU.

    Args:
        device: default: the device of this process that Accelerate selects.
        parallel: default: ``fsdp`` if ``accelerate launch`` is configured for FSDP, else ``ddp``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | torch.device | None = None,
        precision: str = "float32",
        parallel: Parallel | None = None,
        trackers: Sequence[str] = (),
    ) -> None:
        try:
            from accelerate import Accelerator, InitProcessGroupKwargs
            from accelerate.state import AcceleratorState
            from accelerate.utils import ProjectConfiguration
        except ImportError:
            raise MissingExtra("training", library="accelerate", extra="train") from None
        target = None if device is None else resolve_device(device)
        if target is not None and target.type == "cuda" and target.index is not None:
            torch.cuda.set_device(target)
        launched = os.environ.get(_FSDP, "").lower() == "true"
        self._owns_state = not AcceleratorState._shared_state
        uses_cpu = target.type == "cpu" if target else not torch.accelerator.is_available()
        with hidden_variables((_FSDP,)), group_variables():
            self.accelerator = Accelerator(
                cpu=uses_cpu,
                mixed_precision="bf16" if precision == "bfloat16" else "no",
                log_with=list(trackers) or None,
                project_config=ProjectConfiguration(str(folder), logging_dir=str(folder)),
                kwargs_handlers=[InitProcessGroupKwargs(timeout=_TIMEOUT)],
            )
        self.rank: int = self.accelerator.process_index
        self.world: int = self.accelerator.num_processes
        self.device: torch.device = self.accelerator.device
        self.is_main = self.rank == 0
        try:
            check_group(self.world)
        except ZooError:
            self.close()
            raise
        self.precision = precision
        self.sharded = self.world > 1 and (parallel or ("fsdp" if launched else "ddp")) == "fsdp"
        if parallel == "fsdp" and self.world == 1:
            self.close()
            raise ZooError(
                "parallel is 'fsdp', but there is one process; start several with 'accelerate "
                "launch --no-python zoo train ...' or 'torchrun --no-python'"
            )

    def place(self, model: nn.Module) -> None:
        """Move a model to the device of this process, and shard it for FSDP."""
        model.to(self.device)
        if self.sharded:
            shard_model(model, self.device, self.world)

    def wrap(self, module: nn.Module) -> nn.Module:
        """Return the module whose backward pass averages gradients over the processes.

        The module of one process is returned as it is: Accelerate would replace its `forward` by
        one under autocast, which steps enter themselves, and such modules are not captured.
        """
        compiles = self.accelerator.state.dynamo_plugin.backend != "NO"
        if self.sharded or (self.world == 1 and not compiles):
            return module
        wrapped: nn.Module = self.accelerator.prepare_model(module)
        return wrapped

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context of forward passes in ``train.precision``."""
        return autocast_to(self.precision, self.device)

    @contextlib.contextmanager
    def accumulate(self, module: nn.Module, *, sync: bool) -> Iterator[None]:
        """Run a backward pass; gradients are averaged over the processes only if `sync`."""
        if self.sharded:
            set_gradient_sync(module, sync)
            yield
        elif self.world > 1 and not sync:
            with module.no_sync():  # type: ignore[operator]
                yield
        else:
            yield

    def sum(self, values: Tensor) -> Tensor:
        """Return the sums over all processes, without synchronising the device."""
        if self.world > 1:
            torch.distributed.all_reduce(values)
        return values

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on one of the processes."""
        if self.world == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)).item())

    def gather(self, value: Any) -> list[Any]:
        """Return the objects of all processes, by rank."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(values, value)
        return values

    def gather_rows(self, rows: Tensor, length: int) -> list[Tensor]:
        """Return the tensors of all processes, by rank, each padded to `length` rows.

        Gradients do not flow to other processes.
        """
        if self.world == 1:
            return [rows]
        padded = rows.new_zeros(length, *rows.shape[1:])
        padded[: len(rows)] = rows
        gathered = [torch.empty_like(padded) for _ in range(self.world)]
        torch.distributed.all_gather(gathered, padded)
        return gathered

    @contextlib.contextmanager
    def fail_together(self) -> Iterator[None]:
        """Raise ZooError on all processes if the block raises it on one of them."""
        problem: ZooError | None = None
        try:
            yield
        except ZooError as error:
            problem = error
        messages = self.gather(str(problem) if problem else None)
        if problem is not None:
            raise problem
        for message in filter(None, messages):
            raise ZooError(message)

    def barrier(self) -> None:
        """Wait for all processes."""
        self.accelerator.wait_for_everyone()

    def is_connection_error(self, error: RuntimeError) -> bool:
        """Return whether an error is that of a process group whose other processes have ended."""
        is_group_error = isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
        return self.world > 1 and is_group_error

    def describe(self) -> str:
        """Return device and number of processes in words."""
        name = "CPU"
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        elif self.device.type != "cpu":
            name = self.device.type
        if self.world == 1:
            return name
        return f"{self.world} x {name} ({'FSDP2' if self.sharded else 'DDP'})"

    def close(self) -> None:
        """End trackers, and leave Accelerate's shared state as it was before.

        The process group stays, so that the same processes can train again.
        """
        from accelerate.state import AcceleratorState

        for tracker in self.accelerator.trackers:
            tracker.finish()
        if self._owns_state:
            AcceleratorState._reset_state(reset_partial_state=self.world == 1)
        if self.world > 1:
            atexit.unregister(_destroy_group)
            atexit.register(_destroy_group)


def _destroy_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
