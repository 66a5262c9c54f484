"""Sharding of a model over processes with FSDP2, and the full tensors of a sharded model."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch import Tensor, nn

from zoo.errors import ZooError
from zoo.interfaces.evaluation_mode import evaluation_mode

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def shard_model(model: nn.Module, device: torch.device, world: int) -> None:
    """Shard the parameters of a model in place: each repeated block, then the rest.

    Raises:
        ZooError: if a parameter is a scalar, which FSDP2 does not shard.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    for name, parameter in model.named_parameters():
        if parameter.dim() == 0:
            raise ZooError(
                f"parallel is 'fsdp', but the parameter '{name}' is a scalar, which FSDP cannot "
                "shard; use 'ddp'"
            )
    mesh = init_device_mesh(device.type, (world,))
    for block in find_blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the repeated blocks of a model: the entries of its outermost ModuleLists.

    A block is gathered when it is called, so only blocks that the forward pass calls once, and
    whose parameters no other module has, are returned. The cell of a recurrent network would be
    gathered at every time step.
    """
    uses = Counter(id(p) for module in model.modules() for p in module._parameters.values())
    candidates = [
        block
        for block in _outermost_entries(model)
        if any(True for _ in block.parameters())
        and all(uses[id(p)] == _count(block, p) for p in block.parameters())
    ]
    calls = _count_calls(model, candidates)
    return [block for block in candidates if calls[id(block)] == 1]


def _outermost_entries(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _outermost_entries(child)


def _count(block: nn.Module, parameter: Tensor) -> int:
    """Return how many modules inside a block have the parameter."""
    return sum(p is parameter for module in block.modules() for p in module._parameters.values())


def _count_calls(model: nn.Module, candidates: list[nn.Module]) -> Counter[int]:
    """Return how often a forward pass on a small example calls each candidate, by ID."""
    calls: Counter[int] = Counter()

    def record(module: nn.Module, inputs: Any) -> None:
        calls[id(module)] += 1

    with contextlib.ExitStack() as hooks:
        for block in candidates:
            hooks.callback(block.register_forward_pre_hook(record).remove)
        with torch.no_grad(), torch.random.fork_rng(), evaluation_mode(model):
            torch.manual_seed(0)
            with next(model.parameters()).device:
                model(model.example(1, 4))  # type: ignore[operator]
    return calls


def set_gradient_sync(module: nn.Module, sync: bool) -> None:
    """Set whether the next backward pass reduces the gradients of sharded modules."""
    from torch.distributed.fsdp import FSDPModule

    for each in module.modules():
        if isinstance(each, FSDPModule):
            each.set_requires_gradient_sync(sync, recurse=False)


def _is_sharded(tensor: Tensor) -> TypeGuard[DTensor]:
    """Return whether a tensor is a DTensor, without importing a module that takes 0.6 s."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor in this process, which shares its memory."""
    return tensor.to_local() if _is_sharded(tensor) else tensor


def full(tensor: Tensor) -> Tensor:
    """Return the whole tensor; called by all processes together."""
    tensor = tensor.detach()
    return tensor.full_tensor() if _is_sharded(tensor) else tensor


def shard_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Return a whole tensor, present in all processes, as sharded as another of its shape."""
    if not _is_sharded(other) or tensor.shape != other.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    moved = tensor.to(other.device)
    return distribute_tensor(moved, other.device_mesh, other.placements, src_data_rank=None)
