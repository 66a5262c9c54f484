"""Outputs of two models on the same example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zoo.artifact.probe import example_inputs, example_outputs
from zoo.interfaces import Model
from zoo.registry.blueprint import format_error
from zoo.registry.plugin_call import PluginCall
from zoo_diff.side import Side, to_full_precision
from zoo_diff.tensors import Distance, measure_distance


@dataclass(frozen=True)
class OutputDifferences:
    """The largest difference of each output, or the reason why outputs are not compared."""

    reason: str = ""
    distances: Mapping[str, Distance | None] = field(default_factory=dict)
    """By name of the output; None if the shapes differ."""
    shapes: Mapping[str, tuple[list[int], list[int]]] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        return all(each is not None and not each.absolute for each in self.distances.values())

    def as_json(self) -> dict[str, Any]:
        if self.reason:
            return {"compared": False, "reason": self.reason}
        rows = [
            {"name": name, "a_shape": shapes[0], "b_shape": shapes[1]}
            | ({} if (distance := self.distances[name]) is None else distance.as_json())
            for name, shapes in self.shapes.items()
        ]
        return {"compared": True, "outputs": rows}


def compare_outputs(a: Side, b: Side, device: torch.device) -> OutputDifferences:
    """Run both models on one example, in evaluation mode and float32 or float64."""
    if a.model is None or b.model is None:
        return OutputDifferences(a.reason if a.model is None else b.reason)
    try:
        with PluginCall():
            one, two = (to_full_precision(side.model, device) for side in (a, b) if side.model)
            inputs = _common_inputs(one, two)
            if isinstance(inputs, str):
                return OutputDifferences(inputs)
            left, right = example_outputs(one, inputs), example_outputs(two, inputs)
    except Exception as error:
        return OutputDifferences(f"the models do not run on one example: {format_error(error)}")
    common = [name for name in left if name in right]
    if not common:
        names = " and ".join(", ".join(each) or "none" for each in (left, right))
        return OutputDifferences(f"the models have different outputs: {names}")
    shapes = {name: (list(left[name].shape), list(right[name].shape)) for name in common}
    return OutputDifferences(
        "", {name: measure_distance(left[name], right[name]) for name in common}, shapes
    )


def _common_inputs(a: Model, b: Model) -> dict[str, Tensor] | str:
    """Return an example that both models take, or the reason why there is none.

    Of two examples with different token IDs, the one with the smaller IDs is in both vocabularies.
    """
    one, two = example_inputs(a), example_inputs(b)
    if one is None or two is None:
        return "the smallest example is too large"
    if one.keys() != two.keys():
        names = " and ".join(", ".join(sorted(each)) for each in (one, two))
        return f"the models take different inputs: {names}"
    for key in one:
        if one[key].shape != two[key].shape or one[key].dtype != two[key].dtype:
            shapes = f"{list(one[key].shape)} and {list(two[key].shape)}"
            return f"the models take inputs of different shapes: {key} {shapes}"
    return min((one, two), key=_largest_id)


def _largest_id(inputs: Mapping[str, Tensor]) -> int:
    integers = [t for t in inputs.values() if t.numel() and not t.is_floating_point()]
    return max((int(tensor.max()) for tensor in integers), default=0)
