"""A forward pass without values, which shows whether a model accepts a batch of some size."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from zoo.interfaces import Model, Position

# Functions whose output depends on the shape of a tensor, not on its values.
_SHAPE_ONLY = {f"{name}_like" for name in ("empty", "full", "ones", "rand", "randn", "zeros")} | {
    f"new_{name}" for name in ("empty", "full", "ones", "zeros")
}
_RANGES = {"arange", "range", "tensor", "as_tensor"}
_LOOKUPS = {"embedding", "gather", "index_select", "take", "__getitem__"}


class _UnknownLimit(Exception):
    """Raised for a lookup in a table of which it is not known how many rows are used."""


def accepts_batch(model: Model, batch: Mapping[str, Tensor]) -> bool:
    """Whether the model is known to accept a batch of these sizes; nothing is computed.

    The forward pass runs on the meta device, where checks of sizes raise as on others, but IDs are
    not compared with the sizes of tables. So a lookup in a table by positions counts as unknown,
    except in parts that declare their limit.
    """
    empty = _copy_to_meta(model)
    limited = {
        tensor
        for part in empty.modules()
        if isinstance(part, Position)
        for tensor in _weights(part)
    }
    tables = [tensor for tensor in _weights(empty) if tensor not in limited]
    inputs = {key: tensor.to("meta") for key, tensor in batch.items()}
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), _Lookups(tables, inputs):
            empty(inputs)
    except Exception:  # of any part of the model
        return False
    return True


def _copy_to_meta(model: Model) -> Model:
    """Return a copy without values and accelerations, so that the model's state is not changed."""
    memo: dict[int, Any] = {}
    for tensor in _weights(model):
        empty = torch.empty_like(tensor, device="meta")
        memo[id(tensor)] = nn.Parameter(empty) if isinstance(tensor, nn.Parameter) else empty
    return copy.deepcopy(model, memo)


def _weights(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


class _Lookups(TorchFunctionMode):
    """Raises `_UnknownLimit` for lookups in tables by positions.

    Positions are ranges, sums over what does not depend on the values of the batch, and integers
    computed from them.
    """

    def __init__(self, tables: Sequence[Tensor], inputs: Mapping[str, Tensor]) -> None:
        super().__init__()
        # By ID; tensors are kept, so that their IDs are not used again.
        self._tables = {id(tensor): tensor for tensor in tables}
        self._derived = {id(tensor): tensor for tensor in inputs.values()}
        self._positions: dict[int, Tensor] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        ids = {id(tensor) for tensor in _tensors([args, kwargs or {}])}
        positional = not ids.isdisjoint(self._positions)
        if name in _LOOKUPS and positional and not ids.isdisjoint(self._tables):
            raise _UnknownLimit
        outputs = func(*args, **(kwargs or {}))
        results = {id(tensor): tensor for tensor in _tensors(outputs)}
        derived = name not in _SHAPE_ONLY and not ids.isdisjoint(self._derived)
        if derived:
            self._derived.update(results)
        if positional or name in _RANGES or (name == "cumsum" and not derived):
            integers = (torch.int32, torch.int64)
            self._positions.update({i: t for i, t in results.items() if t.dtype in integers})
        return outputs


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
