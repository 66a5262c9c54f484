"""Comparison of the gradients of two Transformers, for the checks of benchmarks."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_SMALL = 1e-3


def assert_close(
    actual: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    tolerance: float,
    what: str,
    *,
    each: bool = False,
) -> None:
    """Raise AssertionError if the relative error of the loss, or of all other tensors together,
    exceeds the tolerance.

    Args:
        each: also compare each tensor, relative to the larger of its norm and 0.1 % of the norm of
            all, because some gradients should be zero, such as those of biases of keys.
    """
    assert actual.keys() == expected.keys(), f"{what}: {actual.keys() ^ expected.keys()}"
    errors = {"all tensors": relative_error(actual, expected)}
    min_norm = _SMALL * _flat(expected).norm()
    for name, value in expected.items():
        if each or name == "loss":
            norm = value.double().norm()
            difference = (actual[name].double() - value.double()).norm()
            errors[name] = float(difference / (norm if name == "loss" else norm.maximum(min_norm)))
    for name, error in errors.items():
        message = f"{what}: {name} differs by {error:.1e}, the tolerance is {tolerance:.1e}"
        assert error <= tolerance, message  # also raised if the error is NaN


def relative_error(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """Return the relative error of all tensors together, except the loss."""
    return float((_flat(actual) - _flat(expected)).norm() / _flat(expected).norm())


def _flat(tensors: Mapping[str, Tensor]) -> Tensor:
    """Return all tensors except the loss as one vector."""
    names = sorted(tensors.keys() - {"loss"})
    return torch.cat([tensors[name].detach().double().flatten() for name in names])


@torch.no_grad()
def separate_hidden_units(model: nn.Module) -> None:
    """Change the ReLU layers of a new model so that no hidden unit is close to 0.

    The gradient of ReLU is not continuous at 0: if rounding changes the sign of a fraction f of the
    hidden units, the gradients change by about the square root of f, which in float32 is larger
    than all other rounding errors. Here half of the units of each layer are positive for all
    inputs, the others negative.
    """
    for name, parameter in model.named_parameters():
        if name.endswith("feed_forward.up.weight"):
            parameter.mul_(0.1)
        if name.endswith("feed_forward.up.bias"):
            is_even = torch.arange(len(parameter), device=parameter.device) % 2 == 0
            parameter.copy_(0.8 * is_even - 0.4)


@contextmanager
def without_kernels() -> Iterator[None]:
    """Use the reference paths inside the block."""
    before = os.environ.get("ZOO_TRITON")
    os.environ["ZOO_TRITON"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["ZOO_TRITON"]
        else:
            os.environ["ZOO_TRITON"] = before
