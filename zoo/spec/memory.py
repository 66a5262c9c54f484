"""The memory that a model and its training need, compared with the memory that is available."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from zoo.errors import ZooError, format_bytes
from zoo.spec.meta import skip_dynamo_import

VARIABLE = "ZOO_MEMORY"
"""Environment variable with the number of bytes to use instead of the available memory."""
_MANY_COPIES = 16
"""The state of an optimiser is not computed if this many copies of the weights fit."""
_DIGITS = 20
"""Digits of the largest number of bytes that a system writes."""


def model_bytes(model: nn.Module, dtype: torch.dtype | None = None) -> int:
    """Return the bytes of parameters and buffers; `dtype` replaces floating-point dtypes."""
    return tensor_bytes([*model.parameters(), *model.buffers()], dtype)


def tensor_bytes(tensors: Sequence[Tensor], dtype: torch.dtype | None = None) -> int:
    """Return the bytes of tensors; `dtype` replaces floating-point dtypes."""
    return sum(
        tensor.numel() * (dtype if dtype and tensor.is_floating_point() else tensor.dtype).itemsize
        for tensor in tensors
    )


def check_memory(what: str, needed: int, device: torch.device, *, mapped: int = 0) -> None:
    """Raise ZooError if `needed` bytes are not available on a device.

    The operating system ends a process that uses more, without a message. What a model allocates
    when it runs is not counted.

    Args:
        what: what needs the memory, for the message.
        mapped: how many of the bytes are in files that are mapped already.
    """
    available = available_bytes(device, mapped=mapped)
    if available is not None and needed > available:
        raise ZooError(
            f"{what} needs {format_bytes(needed)} of memory on device '{device}', but "
            f"{format_bytes(available)} are available; use a smaller model or a larger machine "
            f"({VARIABLE}=BYTES replaces the second number)"
        )


def check_training_memory(
    name: str,
    model: nn.Module,
    build_optimiser: Callable[[], torch.optim.Optimizer],
    device: torch.device,
    *,
    copies: int = 0,
) -> None:
    """Raise ZooError if weights, gradients and the state of the optimiser do not fit on a device.

    Args:
        model: the model on the meta device, whose trained parameters get gradients.
        build_optimiser: returns the optimiser of the trained parameters.
        copies: further copies of the weights, such as moving averages.
    """
    weights = model_bytes(model)
    available = available_bytes(device)
    if available is None or _MANY_COPIES * weights <= available:
        return
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    gradients = tensor_bytes(trained)
    state = _optimiser_bytes(trained, build_optimiser)
    check_memory(
        f"training '{name}' (weights {format_bytes(weights)}, gradients {format_bytes(gradients)}, "
        f"optimiser {format_bytes(state)})",
        weights + gradients + state + copies * weights,
        device,
    )


def _optimiser_bytes(
    trained: Sequence[nn.Parameter], build_optimiser: Callable[[], torch.optim.Optimizer]
) -> int:
    """Return the bytes of an optimiser's state after a step; 0 if it needs values."""
    for weight in trained:
        weight.grad = torch.empty_like(weight)
    # An optimiser of a third party can raise anything if there are no values.
    with contextlib.suppress(Exception), skip_dynamo_import():
        created = build_optimiser()
        created.step()
        values = [value for state in created.state.values() for value in state.values()]
        return tensor_bytes([value for value in values if isinstance(value, Tensor)])
    return 0


def available_bytes(device: torch.device, *, mapped: int = 0) -> int | None:
    """Return the bytes that can be allocated on a device; None if it is not known."""
    configured = os.environ.get(VARIABLE, "")
    if configured:
        if not configured.isdecimal():
            raise ZooError(f"{VARIABLE} is '{configured}'; expected a number of bytes")
        return int(configured)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + unused
    if device.type != "cpu":
        return None
    address_space = _address_space()
    bounds = [
        host_bytes(),
        None if address_space is None else address_space + mapped,
    ]
    return min((bound for bound in bounds if bound is not None), default=None)


def host_bytes(root: Path = Path("/")) -> int | None:
    """Return the free memory of the machine or container, page cache and swap included."""
    rows = _read_table(root / "proc/meminfo")
    if "MemAvailable:" not in rows:
        return None
    swap, total = 1024 * rows.get("SwapFree:", 0), 1024 * rows.get("MemTotal:", 0) or sys.maxsize
    return min(1024 * rows["MemAvailable:"], *_container_bytes(root, total), sys.maxsize) + swap


def _container_bytes(root: Path, total: int) -> Iterator[int]:
    """Yield the free memory of each control group of this process whose limit is below `total`.

    A higher limit allows all the memory of the machine, as no limit does.
    """
    groups = root / "sys/fs/cgroup"
    for line in _read_text(root / "proc/self/cgroup").split("\n"):
        _, *rest = line.split(":", 2)
        if len(rest) < 2:
            continue
        controllers, path = rest
        if controllers == "":
            folder, limit, usage, prefix = groups, "memory.max", "memory.current", ""
        elif controllers == "memory":
            limit, usage, prefix = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
            folder = groups / "memory"
        else:
            continue
        inner = folder / path.lstrip("/")
        for group in (inner, *inner.parents):
            bound = _parse_number(_read_text(group / limit))
            if bound is not None and bound < total:
                used = _parse_number(_read_text(group / usage))
                if used is not None:
                    rows = _read_table(group / "memory.stat")
                    kinds = ("active", "inactive")
                    cached = sum(rows.get(f"{prefix}{kind}_file", 0) for kind in kinds)
                    yield bound - used + cached
            if group == folder:
                break


def _address_space() -> int | None:
    """Return the rest of the limit that ``ulimit -v`` sets; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _read_text(Path("/proc/self/statm")).split()
    return limit - int(pages[0]) * resource.getpagesize() if pages else None


def _read_table(path: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a number in each line."""
    rows = [line.split() for line in _read_text(path).split("\n")]
    numbers = {row[0]: _parse_number(row[1]) for row in rows if len(row) > 1}
    return {name: number for name, number in numbers.items() if number is not None}


def _parse_number(text: str) -> int | None:
    """Return the number in a file of the system; None for "max", another text or absurd length."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, ValueError):  # also of a name with a null character
        return ""
