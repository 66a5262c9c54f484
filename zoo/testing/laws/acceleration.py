"""Laws of accelerations."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from zoo.acceleration import accelerate, is_accelerated, plain_class
from zoo.acceleration.conditions import device_of, why_not
from zoo.interfaces import Acceleration, Call, Declined
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable

TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.bfloat16: 5e-2,
    torch.float16: 1e-2,
}
"""Largest difference, relative to the largest value."""


def same_signature(config: Configuration) -> None:
    """It replaces at least one method of the class it serves, and each takes the object and then
    the arguments of that method."""
    cls: Any = config.cls
    names = cls.methods()
    assert names, f"it defines no method of {cls.serves.__name__}"
    for name in names:
        expected = _parameters(getattr(cls.serves, name))[1:]
        found = _parameters(getattr(cls, name))[2:]
        assert found == expected, f"{name} takes {found}, not {expected}"


def _parameters(function: Any) -> list[tuple[str, Any]]:
    return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]


def same_results(config: Configuration) -> None:
    """Outputs, and gradients if it is differentiable, equal those of the reference path, in each
    dtype."""
    for call, accelerated in _accelerated_calls(config):
        acceleration = config.build()
        plain = copy.deepcopy(call.target)
        expected, expected_grads = _run(acceleration, call, plain)
        actual, actual_grads = _run(acceleration, call, accelerated)
        _compare(acceleration, "output", actual, expected)
        _compare(acceleration, "gradient", actual_grads, expected_grads)


def unchanged_arguments(config: Configuration) -> None:
    """Arguments that the reference path does not change have the same bits after a call."""
    for call, accelerated in _accelerated_calls(config):
        acceleration = config.build()
        expected = _changed_arguments(acceleration, call, copy.deepcopy(call.target))
        changed = _changed_arguments(acceleration, call, accelerated) - expected
        assert not changed, f"it overwrites the tensors {sorted(changed)} of the arguments"


def _changed_arguments(acceleration: Acceleration, call: Call, target: Any) -> set[int]:
    """Return the indices of the tensors in the arguments that a call changes."""
    arguments, options = pytree.tree_map(
        lambda value: value.detach().clone() if isinstance(value, Tensor) else value,
        (call.arguments, dict(call.options)),
    )
    before = [(leaf, leaf.clone()) for leaf in _tensors((arguments, options))]
    with torch.no_grad():
        getattr(target, call.method)(*arguments, **options)
    return {
        index
        for index, (leaf, old) in enumerate(before)
        if leaf.shape != old.shape or not torch.equal(leaf.nan_to_num(), old.nan_to_num())
    }


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]


def plain_copies(config: Configuration) -> None:
    """Copies, pickled objects and the state dict of an accelerated object are those of the plain
    one."""
    for call, accelerated in _accelerated_calls(config):
        plain = plain_class(accelerated)
        copies = {"a deep copy": copy.deepcopy(accelerated), "a copy": copy.copy(accelerated)}
        if _can_be_pickled(call.target):
            copies["a pickled object"] = pickle.loads(pickle.dumps(accelerated))
        for name, other in copies.items():
            assert type(other) is plain, f"{name} has the class {type(other)}, not {plain}"
            assert not is_accelerated(other), f"{name} is accelerated"
            assert vars(other).keys() == vars(call.target).keys(), f"{name} has other attributes"
        if isinstance(accelerated, nn.Module):
            assert list(accelerated.state_dict()) == list(call.target.state_dict())


def _can_be_pickled(target: Any) -> bool:
    """Whether the plain object can be pickled; one of a class inside a function cannot."""
    try:
        pickle.dumps(target)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return True


def reference_conditions(config: Configuration) -> None:
    """Hooks and recorders of the parts run; with gradients or autocast that are not declared, the
    reference path is used."""
    cls: Any = config.cls
    for call, accelerated in _accelerated_calls(config):
        acceleration, device = config.build(), _device(call)
        if not cls.differentiable:
            with torch.enable_grad():
                reason = why_not(acceleration, accelerated, device)
            assert reason is not None, "it is used while gradients are enabled"
        if not cls.supports_autocast:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                reason = why_not(acceleration, accelerated, device)
            assert reason is not None, "it is used while autocast is enabled"
        if isinstance(accelerated, nn.Module):
            _check_hooks(acceleration, call, accelerated)


def _check_hooks(acceleration: Acceleration, call: Call, accelerated: nn.Module) -> None:
    """Raise AssertionError if a hook of a part runs in the plain object only."""
    plain = copy.deepcopy(call.target)
    names = [name for name, _ in plain.named_modules() if name]
    for hooked in (names, [name for name in names if name in acceleration.called_parts]):
        expected, actual = (
            _called_parts(acceleration, call, target, hooked) for target in (plain, accelerated)
        )
        assert actual == expected, f"hooks of {sorted(expected - actual)} do not run"
    for name, part in accelerated.named_modules():
        recorders: Any = getattr(part, "recorders", None)
        if recorders is not None and not acceleration.calls_parts:
            recorders.append(object())
            reason = why_not(acceleration, accelerated, _device(call))
            recorders.pop()
            assert reason is not None, f"it is used while the weights of '{name}' are recorded"


def given_device(config: Configuration) -> None:
    """`why_not` tests the device that it is given: for a module on the meta device, as `zoo check`
    builds it, it returns the same reason as for one with values."""
    cls: Any = config.cls
    modules = 0
    for dtype in cls.dtypes:
        for call in config.build().cases(dtype):
            if not isinstance(call.target, nn.Module):
                continue
            modules += 1
            meta = copy.deepcopy(call.target).to("meta")
            with torch.set_grad_enabled(cls.differentiable):
                expected, found = (
                    config.build().why_not(target, _device(call)) for target in (call.target, meta)
                )
            assert found == expected, f"on the meta device: {found!r}, not {expected!r}"
    if not modules:
        raise NotApplicable("no case has a module")


def _called_parts(
    acceleration: Acceleration, call: Call, target: nn.Module, hooked: Collection[str]
) -> set[str]:
    """Return the names of the parts whose forward hooks run in a call, of those with a hook."""
    called: set[str] = set()

    def hook(name: str) -> Any:
        return lambda *_: called.add(name)

    handles = [
        part.register_forward_hook(hook(name))
        for name, part in target.named_modules()
        if name in hooked
    ]
    try:
        with torch.set_grad_enabled(acceleration.differentiable):
            getattr(target, call.method)(*call.arguments, **call.options)
    finally:
        for handle in handles:
            handle.remove()
    return called


def _accelerated_calls(config: Configuration) -> Iterator[tuple[Call, Any]]:
    """Yield calls to which the acceleration applies on this machine, with an accelerated copy of
    the object; raise NotApplicable if there are none."""
    cls: Any = config.cls
    reason, applied = "it has no cases", False
    for dtype in cls.dtypes:
        for call in config.build().cases(dtype):
            accelerated = accelerate(copy.deepcopy(call.target), registry=config.registry)
            with torch.set_grad_enabled(cls.differentiable):
                found = why_not(config.build(), accelerated, _device(call))
                if found is None:
                    output = getattr(config.build(), call.method)(
                        copy.deepcopy(call.target), *call.arguments, **call.options
                    )
                    found = output.reason if isinstance(output, Declined) else None
            if found is None:
                applied = True
                yield call, accelerated
            else:
                reason = found
    if not applied:
        raise NotApplicable(reason)


def _device(call: Call) -> torch.device:
    return device_of(call.target, (*call.arguments, *call.options.values()))


def _run(
    acceleration: Acceleration, call: Call, target: Any
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return the tensors of a call and the gradients of its inputs and parameters."""
    inputs: list[Tensor] = []

    def copy_leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = value.detach().clone()
        if acceleration.differentiable and value.is_floating_point():
            inputs.append(value.requires_grad_())
        return value

    arguments, options = pytree.tree_map(copy_leaf, (call.arguments, dict(call.options)))
    with torch.set_grad_enabled(acceleration.differentiable):
        tensors = acceleration.tensors(getattr(target, call.method)(*arguments, **options))
        if not acceleration.differentiable:
            return tensors, []
        if isinstance(target, nn.Module):
            inputs += [weight for weight in target.parameters() if weight.requires_grad]
        generator = torch.Generator("cpu").manual_seed(0)
        total = torch.zeros((), dtype=torch.float64)
        for tensor in tensors:
            if tensor.requires_grad:
                factors = torch.randn(tensor.shape, generator=generator, device="cpu")
                total = total + (tensor.double().cpu() * factors.double()).sum()
        grads = torch.autograd.grad(total, inputs, allow_unused=True) if total.requires_grad else ()
    return [tensor.detach() for tensor in tensors], list(grads)


def _compare(acceleration: Acceleration, what: str, actual: Any, expected: Any) -> None:
    assert len(actual) == len(expected), f"{len(actual)} tensors ({what}), not {len(expected)}"
    for index, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if one is None or other is None:
            assert one is None or not one.any(), f"{what} {index} is not None"
            assert other is None or not other.any(), f"{what} {index} is None"
            continue
        assert one.shape == other.shape, f"{what} {index}: {list(one.shape)}"
        assert one.dtype == other.dtype, f"{what} {index}: {one.dtype}, not {other.dtype}"
        if not one.is_floating_point():
            assert torch.equal(one, other), f"{what} {index} differs"
            continue
        assert not one.isnan().any() or other.isnan().any(), f"{what} {index} contains NaN"
        if not one.numel():
            continue
        scale = max(float(other.double().nan_to_num(0, 0, 0).abs().max()), 1.0)
        largest = float((one.double() - other.double()).nan_to_num(0, 0, 0).abs().max()) / scale
        assert largest <= TOLERANCES[one.dtype], f"{what} {index} differs by {largest:.3g}"


LAWS = (
    Law("same-signature", same_signature, per_class=True),
    Law("same-results", same_results),
    Law("unchanged-arguments", unchanged_arguments),
    Law("plain-copies", plain_copies),
    Law("reference-conditions", reference_conditions),
    Law("given-device", given_device),
)
