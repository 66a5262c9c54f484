"""Building of equal layers; on the meta device by copies."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from zoo.registry.blueprint import Blueprint, BuildNode, innermost_node
from zoo.registry.work_limit import Work

M = TypeVar("M", bound=nn.Module)
Copies = dict[int, Any]
"""The copies of modules and tensors by the id of the original."""
Copier = Callable[[Copies], Any]
"""Copies a value, unless it is already among the copies."""


def build_layers(count: int, build: Callable[[], M]) -> nn.ModuleList:
    """Build layers that differ in their initial weights only.

    On the meta device, where weights have no values, the first layer is built and the others are
    copies of it, which takes less time. If an attribute cannot be copied, for example a function
    that refers to the layer, each layer is built.

    Args:
        count: number of layers.
        build: builds one layer, from new modules; every call must build the same.
    """
    if count < 1:
        return nn.ModuleList()
    node, work = innermost_node(), Work()
    begin = len(node.children) if node else 0
    first = build()
    work.end()
    copy = _plan_copies(first) if count > 1 else None
    if copy is None:
        return nn.ModuleList([first, *(build() for _ in range(count - 1))])
    layers, nodes = [first], node.children[begin:] if node else []
    for _ in range(count - 1):
        work.repeat()
        copies: Copies = {}
        layers.append(copy(copies))
        if node:
            node.children += [_copy_node(child, copies) for child in nodes]
    return nn.ModuleList(layers)


def _plan_copies(module: nn.Module) -> Copier | None:
    """Return a function that copies a module; None if it is not on the meta device, or cannot."""
    if not all(tensor.is_meta for tensor in chain(module.parameters(), module.buffers())):
        return None
    try:
        return _plan(module, {})
    except _CannotCopyError:
        return None


class _CannotCopyError(Exception):
    """Raised for a value that may have to be created by its constructor."""


def _copy_node(node: BuildNode, copies: Copies) -> BuildNode:
    return BuildNode(
        node.blueprint,
        from_parent={k: copies.get(id(v), v) for k, v in node.from_parent.items()},
        part=copies.get(id(node.part), node.part),
        children=[_copy_node(child, copies) for child in node.children],
    )


_IMMUTABLE = {
    *(bool, int, float, complex, str, bytes, type(None), type, Blueprint),
    *(torch.dtype, torch.device, torch.Size, types.BuiltinFunctionType),
}

_TABLES = (dict, OrderedDict)


def _plan(value: Any, plans: dict[int, Copier]) -> Copier | None:
    """Return a function that copies a value, or None if the value itself can be used.

    Args:
        plans: the functions of modules and tensors by id.
    """
    kind = type(value)
    if kind in _IMMUTABLE or (kind is types.FunctionType and value.__closure__ is None):
        return None
    if kind in _TABLES:
        return _plan_dict(value, plans)
    if kind is list or kind is tuple or kind is set:
        items = [(item, _plan(item, plans)) for item in value]
        return lambda copies: kind([copy(copies) if copy else item for item, copy in items])
    if id(value) in plans:
        return plans[id(value)]
    if kind in (nn.Parameter, Tensor) and value.is_meta and value.is_leaf and not vars(value):
        # The constructor of a parameter is slower inside the modes of a build.
        create = partial(Tensor._make_subclass, kind, value, value.requires_grad)
    elif isinstance(value, nn.Module) and _has_plain_state(kind):
        return _plan_module(value, plans)
    else:
        raise _CannotCopyError
    key = id(value)

    def copy_tensor(copies: Copies) -> Any:
        if key not in copies:
            copies[key] = create()
        return copies[key]

    plans[key] = copy_tensor
    return copy_tensor


def _plan_dict(value: dict[Any, Any], plans: dict[int, Copier]) -> Copier:
    changed = [(key, copy) for key, item in value.items() if (copy := _plan(item, plans))]

    def copy_dict(copies: Copies) -> Any:
        copied = value.copy()
        for key, copy in changed:
            copied[key] = copy(copies)
        return copied

    return copy_dict


def _plan_module(module: nn.Module, plans: dict[int, Copier]) -> Copier:
    kind, state = type(module), vars(module)
    empty = {name: type(item) for name, item in state.items() if type(item) in _TABLES and not item}
    changed: list[tuple[str, Copier]] = []

    def copy_module(copies: Copies) -> Any:
        if id(module) not in copies:
            copies[id(module)] = copied = kind.__new__(kind)
            values = vars(copied)
            values.update(state)
            for name, table in empty.items():  # most attributes of a module are empty dictionaries
                values[name] = table()
            for name, copy in changed:
                values[name] = copy(copies)
        return copies[id(module)]

    plans[id(module)] = copy_module  # before its attributes, which can refer to it
    others = {name: item for name, item in state.items() if name not in empty}
    changed += [(name, copy) for name, item in others.items() if (copy := _plan(item, plans))]
    return copy_module


def _has_plain_state(kind: Any) -> bool:
    """Return whether the attributes of a module are its whole state."""
    return (
        kind.__new__ is object.__new__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and getattr(kind, "__getstate__", None) is getattr(nn.Module, "__getstate__", None)
        and not hasattr(kind, "__deepcopy__")
        and not any(vars(base).get("__slots__") for base in kind.__mro__)
    )
