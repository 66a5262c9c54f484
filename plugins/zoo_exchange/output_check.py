"""Comparison of an imported model with inputs, activations and outputs of the original."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.errors import ZooError, suggest, truncate
from zoo.interfaces import Memory, Model, Outputs
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo_exchange.array_file import read_arrays
from zoo_exchange.check_hints import hidden_settings
from zoo_exchange.check_result import OUTPUT, TOLERANCE, CheckResult
from zoo_exchange.output_arrays import compare_arrays, find_output

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
        tolerance: the largest difference allowed, relative to the largest value of an array.
        their_modules: module names of the other library and the corresponding ones of the model.
    """
    path = Path(file)
    arrays, sha256 = read_arrays(path)
    batch = {n.removeprefix(BATCH): _to_input(a) for n, a in arrays.items() if n.startswith(BATCH)}
    expected = {name: array for name, array in arrays.items() if not name.startswith(BATCH)}
    if not batch or not any(name.startswith(OUTPUT) for name in expected):
        raise ZooError(
            f"{path} should have inputs, named 'batch.KEY', and outputs, such as 'output.logits'; "
            f"it has {truncate(', '.join(sorted(arrays))) or 'no arrays'}"
        )
    modules = {
        name: _find_module(path, name, model, their_modules or {})
        for name in expected
        if not name.startswith(OUTPUT)
    }
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(()))
    batch = {
        k: v.to(like.device, like.dtype if v.is_floating_point() else None)
        for k, v in batch.items()
    }
    outputs, activations, executed = _run(path, model, batch, set(modules.values()))
    comparisons = [
        compare_arrays(path, name, module, activations[module], expected[name])
        for module in activations
        for name in (name for name, own in modules.items() if own == module)
    ]
    missing = sorted(module for module in modules.values() if module not in activations)
    if missing:
        raise ZooError(f"{path}: module '{missing[0]}' is not called in a forward pass")
    for name in (name for name in expected if name not in modules):
        actual, valid = find_output(path, name, outputs)
        comparisons.append(compare_arrays(path, name, name, actual, expected[name], valid))
    result = CheckResult(path.name, sha256, tolerance, comparisons)
    if not result.failures:
        return result
    first, before = result.failures[0].module, result.last_agreement
    start = executed.index(before.module) + 1 if before and before.module in executed else 0
    stop = executed.index(first) + 1 if first in executed else len(executed)
    return replace(result, settings=hidden_settings(model, executed[start:stop]))


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
) -> tuple[Outputs, dict[str, Tensor], list[str]]:
    """Return the outputs, the output of the first call of each of `modules`, and all calls.

    The activations and the names of the calls are in the order in which the calls return.
    """
    activations: dict[str, Tensor] = {}
    executed: list[str] = []

    def record(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            executed.append(name)
            tensor = next(_tensors(output), None) if name in modules else None
            if tensor is not None:
                activations.setdefault(name, tensor.detach().clone())

        return hook

    handles = [
        module.register_forward_hook(record(name)) for name, module in model.named_modules() if name
    ]
    try:
        with evaluation_mode(model), torch.no_grad():
            return model(batch), activations, executed
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
