"""Binding of accelerations to the objects they serve.

An accelerated object has a subclass of its class, whose methods select an acceleration or the
reference path at each call. Its parameters and names do not change, and copies of it are plain.
"""

from __future__ import annotations

import copyreg
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from zoo.acceleration.conditions import device_of, is_off, why_not, why_not_class, why_not_object
from zoo.acceleration.current_device import call_on, is_other_device
from zoo.errors import ZooError
from zoo.interfaces import Acceleration, Declined
from zoo.interfaces.module_parts import each_part, unwrap_compiled
from zoo.registry.component_registry import ComponentRegistry, default_registry

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_BOUND = "_accelerations"
_DISABLED = "_accelerations_disabled"
_MAX_REASONS = 64
"""Number of reasons that are logged for a class; some contain shapes."""


class Accelerated:
    """Marks the classes of accelerated objects; saved, pickled and copied objects are plain."""

    _found_accelerations: ClassVar[Sequence[tuple[type[Acceleration], frozenset[str]]]]
    """The accelerations of the class, and the packages whose classes each knows."""
    _served_class: ClassVar[type[Any]]
    """The class that the accelerations serve."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = super().__reduce_ex__(protocol)
        if isinstance(reduced, str):
            return reduced
        create, arguments, state, *rest = (*reduced, None, None)[:5]
        own, plain = type(self), plain_class(self)
        arguments = tuple(plain if argument is own else argument for argument in arguments)
        if create is copyreg.__newobj__:  # type: ignore[attr-defined]
            create = plain.__new__  # pickle requires the class of the object for the other one
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name != _BOUND}
        return (create, arguments, state, *rest)


def accelerate(
    target: T, *, enabled: bool | None = None, registry: ComponentRegistry | None = None
) -> T:
    """Attach the accelerations of all plugins to a model, and return the model.

    Its results, parameters and names do not change. `load`, `generate` and `train` call this
    function. The environment variable ``ZOO_FAST=off`` turns off all accelerations.

    In a training loop of your own, `training_step` attaches these and those of the whole step,
    which is captured on a GPU; they are no part of a model, so this function cannot attach them.

    An object whose class was derived from an accelerated one, as parametrizations and
    ``fully_shard`` of torch do, keeps its accelerations until they are removed, and gets no others.

    Args:
        target: a model, which is accelerated with all its parts, or another object that an
            acceleration serves.
        enabled: False removes all accelerations, and calls without this argument, such as that of
            `generate`, do not attach them again; True attaches them again.
        registry: the components; by default those of all installed plugins.

    Raises:
        ZooError: if the target is neither a module nor an object that an acceleration serves.
    """
    parts: list[Any] = each_part(target) if isinstance(target, nn.Module) else [target]
    return accelerate_parts(target, parts, enabled=enabled, registry=registry)


def accelerate_parts(
    target: T,
    parts: Sequence[Any],
    *,
    enabled: bool | None = None,
    registry: ComponentRegistry | None = None,
) -> T:
    """Do what `accelerate` does, given the target and all its parts."""
    model = unwrap_compiled(target) if isinstance(target, nn.Module) else target
    if enabled is None:
        enabled = not getattr(model, _DISABLED, False)
    elif isinstance(model, nn.Module):
        vars(model).pop(_DISABLED, None)
        if not enabled:
            setattr(model, _DISABLED, True)
    if isinstance(target, (str, bytes, Path)):
        raise ZooError(f"accelerate takes a model, not {target!r}; load or compose it first")
    registry = registry or default_registry()
    found = registry.accelerations if enabled and not is_off() else {}
    classes = registry.accelerated
    changed = {
        cls
        for cls in set(map(type, parts))
        if issubclass(cls, Accelerated) != (_served(cls) in found)
    }
    if not changed:
        return target
    for part in parts:
        cls = type(part)  # read once, because a call of another thread can change it
        if cls not in changed:
            continue
        if issubclass(cls, Accelerated):
            if Accelerated in cls.__bases__:
                object.__setattr__(part, "__class__", _plain(cls))
            vars(part).pop(_BOUND, None)
        else:
            if cls not in classes:
                classes[cls] = _accelerated_class(cls, found[cls], registry)
            accelerated: type[Accelerated] = classes[cls]
            # Without `__setattr__` of the module, which is slow.
            vars(part)[_BOUND] = tuple(_create(*each) for each in accelerated._found_accelerations)
            object.__setattr__(part, "__class__", accelerated)
    return target


def known_packages(cls: type[Acceleration], registry: ComponentRegistry) -> frozenset[str]:
    """Return the packages whose classes an acceleration knows."""
    own = cls.__module__.partition(".")[0]
    targets = {plugin.target.partition(".")[0]: plugin.distribution for plugin in registry.plugins}
    related = {name for name, of in targets.items() if of == targets.get(own)}
    return frozenset({"torch", "zoo", own, cls.serves.__module__.partition(".")[0], *related})


def _create(cls: type[Acceleration], packages: frozenset[str]) -> Acceleration:
    acceleration = cls()
    acceleration.packages = packages
    return acceleration


def is_accelerated(target: Any) -> bool:
    """Whether accelerations are attached to an object."""
    return isinstance(target, Accelerated) and _BOUND in vars(target)


def bound_accelerations(target: Any) -> Sequence[Acceleration]:
    """Return the accelerations that are attached to an object."""
    return getattr(target, _BOUND, ())


def plain_class(target: Any) -> type[Any]:
    """Return the class of an object without accelerations."""
    return _plain(type(target))


def _plain(cls: type[Any]) -> type[Any]:
    return _served(cls) if Accelerated in cls.__bases__ else cls


def _served(cls: type[Any]) -> type[Any]:
    """Return the class without accelerations, also of a class derived from an accelerated one."""
    return cls._served_class if issubclass(cls, Accelerated) else cls


def reference(target: Any, method: str) -> Callable[..., Any]:
    """Return a method of an object without the accelerations of the object itself."""
    # Not a bound method: torch.compile of torch 2.11 cannot trace its creation.
    return partial(getattr(_served(type(target)), method), target)


def _accelerated_class(
    plain: type[Any], found: Sequence[type[Acceleration]], registry: ComponentRegistry
) -> type[Any]:
    methods = {name for each in found for name in each.methods()}
    logged: set[tuple[str, str]] = set()
    members: dict[str, Any] = {
        name: _dispatch(plain, name, found, logged) for name in sorted(methods)
    }
    members["_served_class"] = plain
    members["_found_accelerations"] = tuple(
        (each, known_packages(each, registry)) for each in found
    )
    for name in ("__module__", "__qualname__", "__doc__"):
        members[name] = getattr(plain, name)
    return type(plain.__name__, (Accelerated, plain), members)


def _dispatch(
    plain: type[Any],
    name: str,
    found: Sequence[type[Acceleration]],
    logged: set[tuple[str, str]],
) -> Callable[..., Any]:
    """Return the method that selects an acceleration or the reference path.

    Args:
        logged: the accelerations and reasons that were logged.
    """
    original: Callable[..., Any] = getattr(plain, name)
    # The places in `found`, and in the tuple of each object, of the accelerations that a mode
    # permits. Chosen once, so that no call asks the others, and torch.compile guards nothing of
    # them.
    places_by_mode = {
        (compiling, gradients): tuple(
            place
            for place, each in enumerate(found)
            if name in each.methods()
            and why_not_class(each, compiling=compiling, gradients=gradients) is None
        )
        for compiling in (False, True)
        for gradients in (False, True)
    }

    @wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        places = places_by_mode[torch.compiler.is_compiling(), torch.is_grad_enabled()]
        # Read once, because a call of another thread can remove them.
        bound = getattr(self, _BOUND, None) if places else None
        if bound is not None:
            device = device_of(self, (*args, *kwargs.values()))
            for place in places:
                acceleration = bound[place]
                if why_not_object(acceleration, self, device) is None:
                    call = getattr(acceleration, name)
                    if is_other_device(device):
                        output = call_on(device, partial(call, self, *args, **kwargs))
                    else:
                        output = call(self, *args, **kwargs)
                    if not isinstance(output, Declined):
                        return output
                    if not torch.compiler.is_compiling():
                        _log_reason(acceleration.name, output.reason, logged)
        return original(self, *args, **kwargs)

    return run


def _log_reason(name: str, reason: str, logged: set[tuple[str, str]]) -> None:
    """Log why an acceleration does not apply to a call, once for each reason."""
    key = name, reason
    if key in logged or len(logged) >= _MAX_REASONS or not _LOG.isEnabledFor(logging.INFO):
        return
    logged.add(key)
    _LOG.info("acceleration '%s' is not used for a call: %s", name, reason)


@dataclass(frozen=True)
class ModulePath:
    """The path of a part on a device.

    Args:
        name: name of the module in the model.
        acceleration: name of the acceleration.
        evaluation: why it is not used in evaluation mode without gradients; None if it is.
        training: why it is not used in training mode; None if it is.
    """

    name: str
    acceleration: str
    evaluation: str | None
    training: str | None


def module_paths(
    model: nn.Module, device: torch.device, registry: ComponentRegistry | None = None
) -> Iterator[ModulePath]:
    """Yield the path of each part that an acceleration serves; the model may be on the meta device.

    A call can still use the reference path because of its arguments.
    """
    found = (registry or default_registry()).accelerations
    served = [
        (name, module, acceleration)
        for name, module in model.named_modules()
        for acceleration in found.get(plain_class(module), ())
    ]
    reasons = {}
    for mode in (False, True):
        with _training(model, mode), torch.set_grad_enabled(mode):
            reasons[mode] = [why_not(each(), module, device) for _, module, each in served]
    for (name, _, acceleration), *why in zip(served, reasons[False], reasons[True], strict=True):
        yield ModulePath(name, acceleration.name, *why)


@contextmanager
def _training(model: nn.Module, mode: bool) -> Iterator[None]:
    """Set the mode of all modules in the block."""
    before = {module: module.training for module in model.modules()}
    try:
        for module in before:
            module.training = mode
        yield
    finally:
        for module, training in before.items():
            module.training = training
