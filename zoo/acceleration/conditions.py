"""The conditions of all accelerations, in one place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from zoo.interfaces import Acceleration
from zoo.interfaces.module_parts import each_part


def has_hooks(module: nn.Module) -> bool:
    """Return whether a forward or backward hook is registered on the module or inside it.

    A fused path computes the result of its submodules without calling them. The caller then uses
    the reference path, so that the hooks run.
    """
    return any(map(has_own_hooks, each_part(module)))


def has_own_hooks(module: nn.Module) -> bool:
    """Return whether a forward or backward hook is registered on the module itself."""
    own = module.__dict__  # attributes of a module take longer
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )


SWITCH = "ZOO_FAST"
"""Environment variable that turns off all accelerations if it is 'off'."""


def why_not(acceleration: Acceleration, target: Any, device: torch.device) -> str | None:
    """Return why a call of an object uses the reference path, or None if it is accelerated.

    The method can still return `Declined` because of its arguments.
    """
    reason = why_not_class(
        type(acceleration),
        compiling=torch.compiler.is_compiling(),
        gradients=torch.is_grad_enabled(),
    )
    return reason or why_not_object(acceleration, target, device)


def why_not_class(cls: type[Acceleration], *, compiling: bool, gradients: bool) -> str | None:
    """Return why the attributes of an acceleration's class rule it out, or None."""
    if compiling and not cls.traceable:
        return "the model is compiled"
    if gradients and not cls.differentiable:
        return "gradients are enabled"
    return None


def why_not_object(acceleration: Acceleration, target: Any, device: torch.device) -> str | None:
    """Return why an acceleration that its class does not rule out is not used, or None."""
    if device.type == "meta":
        return "the device is 'meta', where nothing is computed"
    if not acceleration.supports_autocast and torch.is_autocast_enabled(device.type):
        return "autocast is enabled"
    reason = acceleration.why_not(target, device)
    # Last, because these take the longest.
    if reason is None and not torch.compiler.is_compiling() and is_off():
        reason = f"{SWITCH} is 'off'"
    if reason is None and not acceleration.calls_parts and isinstance(target, nn.Module):
        skipped = [
            part
            for name, part in target._modules.items()
            if part is not None and name not in acceleration.called_parts
        ]
        reason = _why_not_skip_parts(target, skipped, acceleration.packages)
    return reason


def is_off() -> bool:
    """Whether the switch turns off all accelerations."""
    return os.environ.get(SWITCH) == "off"


def _why_not_skip_parts(
    target: nn.Module, pending: list[nn.Module], packages: frozenset[str]
) -> str | None:
    """Return why the parts of a module have to be called, or None.

    Hooks of the module itself run with its call, accelerated or not.

    Args:
        pending: the parts that the acceleration does not call.
        packages: the packages whose classes the acceleration knows; any if there are none. A class
            of another package can compute something else, for example with an adapter.
    """
    if not torch.compiler.is_compiling() and _has_any_global_hook():  # type: ignore[no-untyped-call]
        return "there are global module hooks"
    # Fast, because it runs at each call: `modules()` would also look for modules used twice, and
    # `getattr` is slow for attributes that a module does not have.
    if target.__dict__.get("recorders"):
        return "attention weights or samples are recorded"
    known: set[type] = set()
    while pending:
        inner = pending.pop()
        if has_own_hooks(inner) or "forward" in inner.__dict__:
            return "a part has module hooks or another forward method"
        if packages and type(inner) not in known:
            if type(inner).__module__.partition(".")[0] not in packages:
                return f"a part is a {type(inner).__name__}, which the acceleration does not know"
            known.add(type(inner))
        if inner.__dict__.get("recorders"):
            return "attention weights or samples are recorded"
        if inner._modules:
            pending.extend(part for part in inner._modules.values() if part is not None)
    return None


def device_of(target: Any, values: Iterable[Any] = ()) -> torch.device:
    """Return the device of a call: that of its first tensor, or of the object."""
    for value in values:
        if not isinstance(value, Tensor) and isinstance(value, Mapping):
            value = next(iter(value.values()), None)
        if isinstance(value, Tensor):
            return value.device
    if isinstance(target, nn.Module):
        weight = next(target.parameters(), None)
        if weight is not None:
            return weight.device
    device = getattr(target, "device", None)
    return device if isinstance(device, torch.device) else torch.device("cpu")
