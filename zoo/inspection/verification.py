"""Computing a stored view again, and what differs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.hub.models import Source, load
from zoo.inspection.attending import view_output
from zoo.inspection.passes import OutputOptions
from zoo.inspection.provenance import hash_weights
from zoo.inspection.saving import select_layers
from zoo.inspection.stored import StoredFile, from_json
from zoo.inspection.view import LayerView, View
from zoo.interfaces import Model

TOLERANCE = 1e-5
"""Difference of exact weights between machines, which add in other orders."""


@dataclass(frozen=True)
class Differences:
    """What a view that was computed again has otherwise than the stored one.

    Args:
        largest: the largest difference of a weight, by path of the layer.
        tolerance: the difference that the stored weights allow, such as their quantum.
        problems: everything else that differs, in words.
    """

    largest: Mapping[str, float]
    tolerance: float
    problems: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether the view is the same."""
        return not self.problems and max(self.largest.values(), default=0.0) <= self.tolerance

    def __str__(self) -> str:
        lines = list(self.problems)
        lines += [
            f"{path}: a weight differs by {value:.3g}, but at most {self.tolerance:.3g} is allowed"
            for path, value in self.largest.items()
            if value > self.tolerance
        ]
        if lines:
            return "\n".join(lines)
        worst = max(self.largest.values(), default=0.0)
        count = len(self.largest)
        return f"{count} layers are the same; the largest difference of a weight is {worst:.2g}"


def verify(
    stored: Mapping[str, Any],
    *,
    model: Model | Source | None = None,
    device: str | torch.device = "cpu",
) -> Differences:
    """Compute a stored view again and compare it.

    Args:
        stored: the data of `to_json`; ``weights`` has those of each layer, and ``tolerance`` the
            largest error of a stored weight, 1e-5 if it is missing.
        model: the model, if the stored reference does not find it.

    Raises:
        ZooError: if the data are not those of a view, or the model is not found.
    """
    weights = [torch.as_tensor(each, dtype=torch.float32) for each in stored.get("weights", ())]
    before = from_json(stored, weights)
    source = before.provenance["model"]["reference"] if model is None else model
    if source is None:
        raise ZooError(
            "the view is that of a model in memory, which has no name; pass the saved model "
            "(command line: zoo attend --verify FILE MODEL)"
        )
    loaded = source if isinstance(source, Model) else load(source, device=device)
    with tempfile.TemporaryDirectory() as folder:
        options = OutputOptions(
            output=before.provenance["output"],
            has_ended=before.provenance["ended"],
            prompt=before.provenance["prompt"],
        )
        inputs = _restore(before.inputs, Path(folder))
        after = view_output(loaded, inputs, options, source=loaded)
    tolerance = float(stored.get("tolerance", TOLERANCE))
    return _compare(before, after, hash_weights(loaded), tolerance)


def _restore(inputs: Mapping[str, Any], folder: Path) -> Any:
    """Return the inputs as `attend` takes them; stored files are written into a folder."""
    values = {
        role: value.write(folder) if isinstance(value, StoredFile) else value
        for role, value in inputs.items()
    }
    return next(iter(values.values())) if len(values) == 1 else values


def _compare(before: View, after: View, weights: str, tolerance: float) -> Differences:
    problems = []
    expected = before.provenance["model"]["weights"]
    if expected != weights:
        problems.append(f"the model has other weights: sha256 {weights[:12]}, not {expected[:12]}")
    old, new = ([layer.path for layer in view.layers] for view in (before, after))
    if not set(old) <= set(new):
        problems.append(f"the model has other attention modules: {', '.join(new)}")
        return Differences({}, tolerance, problems)
    after = select_layers(after, old, before.provenance.get("heads"))
    largest = {}
    for layer, other in zip(before.layers, after.layers, strict=True):
        problems += _compare_axes(layer, other)
        if layer.weights.shape == other.weights.shape:
            largest[layer.path] = _largest_difference(layer.weights, other.weights)
    return Differences(largest, tolerance, problems)


def _compare_axes(layer: LayerView, other: LayerView) -> list[str]:
    pairs = [(layer.rows, other.rows), (layer.columns, other.columns)]
    wrong = [f"{layer.path}: '{a.name}' has other labels" for a, b in pairs if a != b]
    if layer.weights.shape != other.weights.shape:
        shapes = f"{list(other.weights.shape)}, not {list(layer.weights.shape)}"
        wrong.append(f"{layer.path}: the weights have shape {shapes}")
    return wrong


def _largest_difference(weights: Tensor, others: Tensor) -> float:
    return float((weights - others).abs().max()) if weights.numel() else 0.0
