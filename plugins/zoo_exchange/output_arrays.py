"""Outputs of a model by name, and the comparison of an array with that of the original."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Outputs
from zoo_exchange.check_result import OUTPUT, Comparison

FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda logits: logits.softmax(dim=-1),
    "log_softmax": lambda logits: logits.log_softmax(dim=-1),
    "sigmoid": torch.sigmoid,
}
"""Functions of an output that originals return instead of it: ``output.logits.softmax``."""

_SUM_TOLERANCE = 1e-3


def find_output(path: Path, name: str, outputs: Outputs) -> tuple[Tensor, Tensor | None]:
    """Return an output by name, and where it is compared; None is everywhere."""
    available = {"logits": outputs.logits, **outputs.extras}
    key, function = name.removeprefix(OUTPUT), ""
    if key not in available:
        key, _, function = key.rpartition(".")
    if key not in available or (function and function not in FUNCTIONS):
        names = ", ".join(f"'{OUTPUT}{other}'" for other in available)
        raise ZooError(
            f"{path}: the model has no output '{name}'; it has {names}, each also with one of "
            f".{', .'.join(FUNCTIONS)}"
        )
    output = available[key]
    if function:
        output = FUNCTIONS[function](output.double())
    aligned = outputs.mask.shape == outputs.logits.shape[: outputs.mask.dim()]
    return output, outputs.mask if key == "logits" and aligned else None


def compare_arrays(
    path: Path,
    name: str,
    module: str,
    actual: Tensor,
    expected: Tensor,
    valid: Tensor | None = None,
) -> Comparison:
    """Return the largest difference and the largest value; NaN in the file is not compared."""
    expected, actual = expected.double(), actual.double().cpu()
    valid = None if valid is None else valid.cpu()
    if not name.startswith(OUTPUT):  # an activation for all examples may have no batch dimension
        while expected.dim() > actual.dim() and expected.shape[0] == 1:
            expected = expected[0]
    if expected.shape != actual.shape:
        raise ZooError(
            f"{path}: '{name}' has shape {list(expected.shape)}, but the model computes "
            f"{list(actual.shape)}; the shapes should be equal, including the batch dimension"
        )
    compared = ~expected.isnan()
    if valid is not None:
        compared &= valid.reshape(*valid.shape, *[1] * (compared.dim() - valid.dim()))
    if not compared.any():
        raise ZooError(f"{path}: '{name}' has no value to compare; all are NaN or padding")
    finite = expected[compared & expected.isfinite()]
    largest = finite.abs().max().item() if finite.numel() else 0.0
    compared &= expected != actual  # equal infinities have no difference
    differences = (expected - actual)[compared].abs().nan_to_num(nan=math.inf)
    difference = differences.max().item() if differences.numel() else 0.0
    return Comparison(name, module, difference, largest, _function_hint(name, expected))


def _function_hint(name: str, expected: Tensor) -> str:
    """Return what the values of logits may be instead; the user decides by the name."""
    if name != f"{OUTPUT}logits" or expected.dim() < 2:
        return ""
    rows = expected.flatten(0, -2)
    rows = rows[rows.isfinite().all(dim=-1)]
    for function, probabilities in (("softmax", rows), ("log_softmax", rows.exp())):
        sums = probabilities.sum(dim=-1)
        is_distribution = (probabilities >= 0).all() and ((sums - 1).abs() < _SUM_TOLERANCE).all()
        if len(rows) and is_distribution:
            return (
                f"'{name}' looks like the {function} of logits; if it is, name the array "
                f"'{name}.{function}'"
            )
    return ""
