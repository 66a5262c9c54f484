"""Computing a stored view again, and what differs."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, NonNegativeInt, PositiveInt, ValidationError
from torch import Tensor

from zoo.about import version
from zoo.errors import ZooError, one_line, truncate
from zoo.files import os_error_message
from zoo.hub.models import Source, load
from zoo.interfaces import Model
from zoo_inspect.attending import view_output
from zoo_inspect.page import pool_weights, read_page
from zoo_inspect.passes import OutputOptions
from zoo_inspect.provenance import hash_weights
from zoo_inspect.quantised import MAX_ERROR
from zoo_inspect.saving import select_layers
from zoo_inspect.stored import StoredFile, from_json, weights_from_json
from zoo_inspect.view import LayerView, View

TOLERANCE = 1e-5
"""Difference of exact weights between machines, which add in other orders."""
_OTHER_DEVICE = 1e-3
"""Further difference between kinds of devices, which may compute products in lower precision."""
_PROBABILITY = re.compile(r"(.* \(p = )([\d.]{1,9})\)", re.DOTALL)
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class Differences:
    """What a view that was computed again has otherwise than the stored one.

    Args:
        largest: the largest difference of a weight, by path of the layer.
        tolerance: the difference that the stored weights allow, such as their quantum.
        problems: everything else that differs, in words.
        note: what was not compared, in words.
    """

    largest: Mapping[str, float]
    tolerance: float
    problems: Sequence[str] = ()
    note: str = ""

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
        same = f"the same as computed again; weights differ by at most {worst:.2g} ({layers})"
        return same + self.note


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
    except RecursionError:
        raise ZooError(f"{path} is not valid JSON: it is nested too deeply") from None
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
    before, record = _parse(stored)
    source = record.provenance.model.reference if model is None else model
    if source is None:
        raise ZooError(
            "the view is that of a model in memory, which has no name; pass the saved model "
            "(command line: zoo attend FILE MODEL --verify)"
        )
    loaded = source if isinstance(source, Model) else load(source, device=device)
    with tempfile.TemporaryDirectory() as folder:
        options = OutputOptions(
            output=record.provenance.output,
            has_ended=record.provenance.ended,
            prompt=record.provenance.prompt,
        )
        inputs = _restore(before.inputs, Path(folder))
        nodes = next((e.rows.labels for e in before.layers if e.kind == "edges"), None)
        after = view_output(loaded, inputs, options, source=loaded, nodes=nodes)
    return _compare(before, after, record, hash_weights(loaded))


class _ModelRecord(BaseModel):
    reference: str | None
    weights: str


class _Provenance(BaseModel):
    zoo: str = ""
    device: str
    model: _ModelRecord
    output: list[NonNegativeInt] | None
    ended: bool
    prompt: str | list[NonNegativeInt] | None
    heads: list[PositiveInt] | None = None


class _LayerRecord(BaseModel):
    pool: tuple[PositiveInt, PositiveInt] = (1, 1)


class _Record(BaseModel):
    """What of the stored data is used to compute the view again and to compare it."""

    provenance: _Provenance
    layers: list[_LayerRecord]
    tolerance: float = 0.0
    problems: list[str] = []


def _parse(stored: Mapping[str, Any]) -> tuple[View, _Record]:
    """Return the stored view; raise ZooError if the data are not those of one."""
    try:
        weights = weights_from_json(
            stored.get("weights", ()) if isinstance(stored, Mapping) else ()
        )
        view, record = from_json(stored, weights), _Record.model_validate(stored)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ZooError(f"the stored view is damaged: {place}: {first['msg'].lower()}") from None
    except _DAMAGE as error:
        reason = truncate(one_line(str(error)), 200)
        raise ZooError(f"the stored view is damaged: {reason}") from None
    return view, record


def _restore(inputs: Mapping[str, Any], folder: Path) -> Any:
    """Return the inputs as `attend` takes them; stored files are written into a folder."""
    values = {
        role: value.write(folder) if isinstance(value, StoredFile) else value
        for role, value in inputs.items()
    }
    return next(iter(values.values())) if len(values) == 1 else values


def _compare(before: View, after: View, record: _Record, weights: str) -> Differences:
    provenance = record.provenance
    problems = list(record.problems)
    note = ""
    if provenance.zoo != version():
        note = (
            f"; zoo {provenance.zoo} has written it, this is zoo {version()}: its spec, equations, "
            "texts and script were not compared"
        )
    expected = provenance.model.weights
    if expected != weights:
        problems.append(f"the model has other weights: sha256 {weights[:12]}, not {expected[:12]}")
    tolerance = _tolerance(after, record)
    old, new = ([layer.path for layer in view.layers] for view in (before, after))
    if not set(old) <= set(new) or old != [path for path in new if path in old]:
        problems.append(f"the model has other attention modules: {', '.join(new)}")
        return Differences({}, tolerance, problems, note)
    after = select_layers(after, old, provenance.heads)
    problems += _compare_views(before, after, is_same_version=not note)
    largest = {}
    for layer, other, stored in zip(before.layers, after.layers, record.layers, strict=True):
        T, S = max(1, other.weights.shape[-2]), max(1, other.weights.shape[-1])
        pooled = pool_weights(other.weights, (min(stored.pool[0], T), min(stored.pool[1], S)))
        problems += _compare_axes(layer, other)
        if layer.weights.shape == pooled.shape:
            largest[layer.path] = _largest_difference(layer.weights, pooled)
        else:
            shapes = f"{list(pooled.shape)}, not {list(layer.weights.shape)}"
            problems.append(f"{layer.path}: the weights have shape {shapes}")
    return Differences(largest, tolerance, problems, note)


def _tolerance(after: View, record: _Record) -> float:
    """Return the stored error of weights, at most that of a page, and that of another device."""
    ends = [end.item() for layer in after.layers for end in layer.weights.aminmax() if end.numel()]
    error = MAX_ERROR * max(1.0, max(ends, default=0.0) - min([0.0, *ends]))
    tolerance = TOLERANCE + (record.tolerance if 0 <= record.tolerance <= error else error)
    if after.provenance["device"] != record.provenance.device:
        tolerance += _OTHER_DEVICE
    return tolerance


def _compare_views(before: View, after: View, *, is_same_version: bool) -> list[str]:
    """Return the names of what differs, apart from weights and labels."""
    pairs = {
        "model": (before.model, after.model),
        "output": (_round_probability(before.output), _round_probability(after.output)),
        "edges": (_to_list(before.edges), _to_list(after.edges)),
        "images": ({*before.images}, {*after.images}),
    }
    pairs |= {
        f"image of {role}": (_to_list(image), _to_list(after.images[role]))
        for role, image in before.images.items()
        if role in after.images
    }
    for layer, other in zip(before.layers, after.layers, strict=True):
        pairs[f"{layer.path}: kind"] = (layer.kind, other.kind)
        pairs[f"{layer.path}: chosen path"] = (_to_list(layer.chosen), _to_list(other.chosen))
        if is_same_version:
            equations = ([asdict(each) for each in one.equations] for one in (layer, other))
            pairs[f"{layer.path}: equations"] = (*map(_to_plain, equations),)
    if is_same_version:
        pairs["spec"] = (_to_plain(before.spec), _to_plain(after.spec))
    return [f"{name} differs" for name, (old, new) in pairs.items() if old != new]


def _to_plain(data: Any) -> Any:
    return json.loads(json.dumps(data))


def _to_list(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.tolist()


def _round_probability(output: str | None) -> str | None:
    """Return the output with two digits of a class's probability, which depends on the device."""
    found = _PROBABILITY.fullmatch(output or "")
    return f"{found[1]}{float(found[2]):.2f}" if found else output


def _compare_axes(layer: LayerView, other: LayerView) -> list[str]:
    pairs = [(layer.rows, other.rows), (layer.columns, other.columns)]
    return [f"{layer.path}: '{a.name}' has other labels" for a, b in pairs if a != b]


def _largest_difference(weights: Tensor, others: Tensor) -> float:
    """Return the largest difference, infinity if a weight is not a number."""
    largest = float((weights - others).abs().max()) if weights.numel() else 0.0
    return largest if largest == largest else math.inf
