"""Computing a stored view again, and what differs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.files import os_error_message
from zoo.hub.models import Source, load
from zoo.interfaces import Model
from zoo_inspect.attending import view_output
from zoo_inspect.page import pool_weights, read_page
from zoo_inspect.passes import OutputOptions
from zoo_inspect.provenance import hash_weights
from zoo_inspect.saving import select_layers
from zoo_inspect.stored import StoredFile, from_json, weights_from_json
from zoo_inspect.view import LayerView, View

TOLERANCE = 1e-5
"""Difference of exact weights between machines, which add in other orders."""
_OTHER_DEVICE = 1e-3
"""Further difference between kinds of devices, which may compute products in lower precision."""


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
        layers = ", ".join(self.largest)
        return f"the same as computed again; weights differ by at most {worst:.2g} ({layers})"


def read_stored(path: Path) -> Mapping[str, Any]:
    """Return the data of a page or a JSON file that `zoo attend` has written, for `verify`.

    Raises:
        ZooError: if the file cannot be read.
    """
    if path.suffix.lower() not in (".html", ".json"):
        raise ZooError(
            f"{path} cannot be verified, since it does not contain its weights; pass the .html or "
            ".json file that 'zoo attend -o' has written"
        )
    if path.suffix.lower() == ".html":
        page, weights = read_page(path)
        return {**page, "weights": weights}
    try:
        data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = os_error_message(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ZooError(f"{path} cannot be read: {reason}") from None
    except json.JSONDecodeError as error:
        raise ZooError(f"{path}:{error.lineno} is not valid JSON: {error.msg}") from None
    return data


def verify(
    stored: Mapping[str, Any],
    *,
    model: Model | Source | None = None,
    device: str | torch.device = "cpu",
) -> Differences:
    """Compute a stored view again and compare it.

    Args:
        stored: the data of `to_json`; ``weights`` has those of each layer, ``tolerance`` the
            largest error of a stored weight, 0 if it is missing, and ``pool`` of a layer how
            many rows and columns each of its weights is the maximum of, if it is pooled.
        model: the model, if the stored reference does not find it.

    Raises:
        ZooError: if the data are not those of a view, or the model is not found.
    """
    before = from_json(stored, weights_from_json(stored.get("weights", ())))
    source = before.provenance["model"]["reference"] if model is None else model
    if source is None:
        raise ZooError(
            "the view is that of a model in memory, which has no name; pass the saved model "
            "(command line: zoo attend FILE MODEL --verify)"
        )
    loaded = source if isinstance(source, Model) else load(source, device=device)
    with tempfile.TemporaryDirectory() as folder:
        options = OutputOptions(
            output=before.provenance["output"],
            has_ended=before.provenance["ended"],
            prompt=before.provenance["prompt"],
        )
        inputs = _restore(before.inputs, Path(folder))
        nodes = next((e.rows.labels for e in before.layers if e.kind == "edges"), None)
        after = view_output(loaded, inputs, options, source=loaded, nodes=nodes)
    tolerance = float(stored.get("tolerance", 0.0)) + TOLERANCE
    if after.provenance["device"] != before.provenance["device"]:
        tolerance += _OTHER_DEVICE
    pools = {layer["path"]: tuple(layer.get("pool", (1, 1))) for layer in stored["layers"]}
    return _compare(before, after, pools, hash_weights(loaded), tolerance)


def _restore(inputs: Mapping[str, Any], folder: Path) -> Any:
    """Return the inputs as `attend` takes them; stored files are written into a folder."""
    values = {
        role: value.write(folder) if isinstance(value, StoredFile) else value
        for role, value in inputs.items()
    }
    return next(iter(values.values())) if len(values) == 1 else values


def _compare(
    before: View,
    after: View,
    pools: Mapping[str, tuple[int, int]],
    weights: str,
    tolerance: float,
) -> Differences:
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
        pooled = pool_weights(other.weights, pools[layer.path])
        problems += _compare_axes(layer, other)
        if layer.weights.shape == pooled.shape:
            largest[layer.path] = _largest_difference(layer.weights, pooled)
        else:
            shapes = f"{list(pooled.shape)}, not {list(layer.weights.shape)}"
            problems.append(f"{layer.path}: the weights have shape {shapes}")
    return Differences(largest, tolerance, problems)


def _compare_axes(layer: LayerView, other: LayerView) -> list[str]:
    pairs = [(layer.rows, other.rows), (layer.columns, other.columns)]
    return [f"{layer.path}: '{a.name}' has other labels" for a, b in pairs if a != b]


def _largest_difference(weights: Tensor, others: Tensor) -> float:
    return float((weights - others).abs().max()) if weights.numel() else 0.0
