"""Comparison of an imported model with inputs, activations and outputs of the original."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.errors import ZooError, suggest, truncate
from zoo.exchange.array_file import read_arrays
from zoo.exchange.check_hints import hidden_settings
from zoo.exchange.check_result import OUTPUT, TOLERANCE, CheckResult, Comparison
from zoo.interfaces import Memory, Model, Outputs
from zoo.interfaces.evaluation_mode import evaluation_mode

BATCH = "batch."
"""Prefix of the names of inputs; names without it and `OUTPUT` are those of modules."""


def check_outputs(
    model: Model,
    file: str | os.PathLike[str],
    *,
    tolerance: float = TOLERANCE,
    their_modules: Mapping[str, str] | None = None,
) -> CheckResult:
    """Run a model on the inputs of a file and compare its activations and outputs.

    Args:
        model: the model, with its weights.
        file: an ``.npz`` file with arrays ``batch.KEY``, ``output.NAME`` and any module names.
        tolerance: the largest absolute difference allowed.
        their_modules: module names of the other library and the corresponding ones of the model.
    """
    path = Path(file)
    arrays, sha256 = read_arrays(path)
    batch = {n.removeprefix(BATCH): _to_input(a) for n, a in arrays.items() if n.startswith(BATCH)}
    expected = {name: array for name, array in arrays.items() if not name.startswith(BATCH)}
    if not batch or not expected:
        raise ZooError(
            f"{path} should have inputs, named 'batch.KEY', and outputs, such as 'output.logits'; "
            f"it has {truncate(', '.join(sorted(arrays))) or 'no arrays'}"
        )
    modules = {
        name: _find_module(path, name, model, their_modules or {})
        for name in expected
        if not name.startswith(OUTPUT)
    }
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    batch = {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()}
    outputs, activations = _run(path, model, batch, set(modules.values()))
    comparisons = [
        Comparison(name, module, _difference(path, name, activations[module], expected[name]))
        for module in activations
        for name in (name for name, own in modules.items() if own == module)
    ]
    missing = sorted(module for module in modules.values() if module not in activations)
    if missing:
        raise ZooError(f"{path}: module '{missing[0]}' is not called in a forward pass")
    for name in (name for name in expected if name not in modules):
        actual, valid = _find_output(path, name, outputs)
        comparisons.append(
            Comparison(name, name, _difference(path, name, actual, expected[name], valid))
        )
    result = CheckResult(path.name, sha256, tolerance, comparisons)
    return replace(result, settings=_settings(model, result)) if result.failures else result


def _settings(model: Model, result: CheckResult) -> list[str]:
    """Return the settings near the first difference and near the module before it."""
    before = result.last_agreement
    settings = hidden_settings(model, result.failures[0].module)
    settings += hidden_settings(model, before.module if before else "")
    return list(dict.fromkeys(settings))


def _to_input(tensor: Tensor) -> Tensor:
    is_integer = not tensor.is_floating_point() and tensor.dtype != torch.bool
    return tensor.long() if is_integer else tensor


def _find_module(path: Path, name: str, model: nn.Module, their_modules: Mapping[str, str]) -> str:
    own = {module for module, _ in model.named_modules() if module}
    module = name if name in own else their_modules.get(name)
    if module is None:
        raise ZooError(
            f"{path}: '{name}' is not a module of the model, nor one that the map "
            f"relates to it{suggest(name, [*own, *their_modules])}"
        )
    return module


def _run(
    path: Path, model: Model, batch: Mapping[str, Tensor], modules: set[str]
) -> tuple[Outputs, dict[str, Tensor]]:
    """Return the outputs, and the output of the first call of each module, in order."""
    activations: dict[str, Tensor] = {}

    def record(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            tensor = next(_tensors(output), None)
            if tensor is not None:
                activations.setdefault(name, tensor.detach().clone())

        return hook

    handles = [model.get_submodule(name).register_forward_hook(record(name)) for name in modules]
    try:
        with evaluation_mode(model), torch.no_grad():
            return model(batch), activations
    except KeyError as error:
        raise ZooError(
            f"{path} has no array 'batch.{error.args[0]}', which the model needs"
        ) from None
    except (ZooError, RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = truncate(str(error), 300)
        raise ZooError(f"{path}: the model cannot process the inputs: {reason}") from None
    finally:
        for handle in handles:
            handle.remove()


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Memory):
        yield output.states
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from _tensors(part)


def _find_output(path: Path, name: str, outputs: Outputs) -> tuple[Tensor, Tensor | None]:
    """Return an output by name, and where it is compared; None is everywhere."""
    key = name.removeprefix(OUTPUT)
    if key == "logits":
        aligned = outputs.mask.shape == outputs.logits.shape[: outputs.mask.dim()]
        return outputs.logits, outputs.mask if aligned else None
    if key in outputs.extras:
        return outputs.extras[key], None
    names = ", ".join(f"'{OUTPUT}{other}'" for other in ("logits", *sorted(outputs.extras)))
    raise ZooError(f"{path}: the model has no output '{name}'; it has {names}")


def _difference(
    path: Path,
    name: str,
    actual: Tensor,
    expected: Tensor,
    valid: Tensor | None = None,
) -> float:
    """Return the largest absolute difference; NaN in the file is not compared."""
    expected, actual = expected.double(), actual.double()
    if expected.squeeze().shape == actual.squeeze().shape:  # a batch of one may be left out
        expected = expected.reshape(actual.shape)
    if expected.shape != actual.shape:
        raise ZooError(
            f"{path}: '{name}' has shape {list(expected.shape)}, but the model computes "
            f"{list(actual.shape)}"
        )
    compared = ~expected.isnan()
    if valid is not None:
        compared &= valid.reshape(*valid.shape, *[1] * (compared.dim() - valid.dim()))
    if not compared.any():
        raise ZooError(f"{path}: '{name}' has no value to compare; all are NaN or padding")
    compared &= expected != actual  # equal infinities have no difference
    if not compared.any():
        return 0.0
    return (expected - actual)[compared].abs().nan_to_num(nan=math.inf).max().item()
