"""Views as JSON: everything but the weights, and the weights; both pages and JSON files use it.

Inputs that are files or arrays are stored with their content, so that a view can be computed again
on another machine.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zoo.errors import ZooError
from zoo_inspect.quantised import decompress
from zoo_inspect.view import Axis, Equation, LayerView, View

MAX_CONTENT = 2**30
"""Largest number of bytes of an input after decompression."""
Array = NDArray[np.float32]
FORMAT = "zoo-attention"
VERSION = 1
MAX_LISTED = 500_000
"""Largest number of weights of a layer that are numbers in a JSON file, about 6 MB."""


def to_json(view: View) -> dict[str, Any]:
    """Return a view without the weights as plain data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": view.model,
        "inputs": {role: encode_value(value) for role, value in view.inputs.items()},
        "output": view.output,
        "layers": [_layer_to_json(layer) for layer in view.layers],
        "spec": dict(view.spec),
        "provenance": dict(view.provenance),
        "images": {role: _encode_array(image.numpy()) for role, image in view.images.items()},
        "edges": None if view.edges is None else view.edges.tolist(),
    }


def weights_to_json(view: View) -> list[Any]:
    """Return the weights of each layer, exact in float32: nested lists; those of a layer with more
    than `MAX_LISTED` weights as `encode_value` returns an array, which has half the bytes."""
    return [_weights_to_json(layer.weights.numpy()) for layer in view.layers]


def _weights_to_json(weights: Array) -> Any:
    if weights.size > MAX_LISTED:
        return encode_value(weights.astype("<f4"))
    # The shortest text that is read as the same float32.
    return weights.astype(str).astype(float).tolist()


def weights_from_json(weights: Sequence[Any]) -> list[Tensor]:
    """Return the weights of each layer that `weights_to_json` returned; or tensors themselves."""
    return [torch.as_tensor(decode_value(each), dtype=torch.float32) for each in weights]


def from_json(data: Mapping[str, Any], weights: Sequence[Tensor]) -> View:
    """Return the view of `to_json` with the weights of each layer.

    Raises:
        ZooError: if the data are not those of a view.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ZooError("it is not a view of attention, as 'zoo attend -o' writes it")
    if data["version"] != VERSION:
        raise ZooError(f"it has version {data['version']}; this version of the zoo reads {VERSION}")
    edges = data["edges"]
    return View(
        model=data["model"],
        inputs={role: decode_value(value) for role, value in data["inputs"].items()},
        output=data["output"],
        layers=[_layer_from_json(*pair) for pair in zip(data["layers"], weights, strict=True)],
        spec=data["spec"],
        provenance=data["provenance"],
        images={k: torch.from_numpy(decode_value(v)) for k, v in data["images"].items()},
        edges=None if edges is None else torch.tensor(edges),
    )


def encode_value(value: Any) -> Any:
    """Return an input as plain data: a file with its content, an array, or the value itself."""
    if isinstance(value, Path):
        content = value.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        return _compress({"file": value.name, "sha256": sha256, "base64": _to_base64(content)})
    if isinstance(value, Tensor):
        value = value.cpu().numpy()
    if isinstance(value, np.ndarray):
        return _compress(_encode_array(value))
    if isinstance(value, Mapping):
        return {key: encode_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        items = [encode_value(each) for each in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    return value.item() if isinstance(value, np.generic) else value


def decode_value(value: Any) -> Any:
    """Return an input that `encode_value` has encoded; the content of a file as `StoredFile`."""
    if isinstance(value, Mapping) and ("base64" in value or "zlib" in value):
        if "file" in value:
            return StoredFile(value["file"], _decode_content(value, MAX_CONTENT))
        size = prod(value["shape"]) * np.dtype(value["array"]).itemsize
        content = _decode_content(value, min(size, MAX_CONTENT))
        return np.frombuffer(content, dtype=value["array"]).reshape(value["shape"]).copy()
    if isinstance(value, Mapping) and value.keys() == {"tuple"}:
        return tuple(decode_value(each) for each in value["tuple"])
    if isinstance(value, Mapping):
        return {key: decode_value(each) for key, each in value.items()}
    return [decode_value(each) for each in value] if isinstance(value, list) else value


def _decode_content(value: Mapping[str, Any], max_bytes: int) -> bytes:
    content = base64.b64decode(value["zlib"] if "zlib" in value else value["base64"])
    if "zlib" in value:
        content = decompress(content, max_bytes)
    if "sha256" in value and hashlib.sha256(content).hexdigest() != value["sha256"]:
        raise ValueError("a file in it has another sha256")
    return content


class StoredFile:
    """The content of an input file."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.content = name, content

    def write(self, folder: Path) -> Path:
        """Write the file into a folder, with its suffix."""
        path = folder / f"input{Path(self.name).suffix}"
        path.write_bytes(self.content)
        return path


def _encode_array(array: NDArray[Any]) -> dict[str, Any]:
    content = np.ascontiguousarray(array).tobytes()
    return {"array": array.dtype.str, "shape": list(array.shape), "base64": _to_base64(content)}


def _compress(encoded: dict[str, Any]) -> dict[str, Any]:
    """Return an encoded value with the content compressed, if that is shorter."""
    rest = {key: value for key, value in encoded.items() if key != "base64"}
    compressed = _to_base64(zlib.compress(base64.b64decode(encoded["base64"])))
    is_shorter = len(compressed) < len(encoded["base64"])
    return rest | {"zlib": compressed} if is_shorter else encoded


def _to_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _layer_to_json(layer: LayerView) -> dict[str, Any]:
    return {
        "path": layer.path,
        "kind": layer.kind,
        "shape": list(layer.weights.shape),
        "rows": asdict(layer.rows),
        "columns": asdict(layer.columns),
        "equations": [asdict(equation) for equation in layer.equations],
        "chosen": None if layer.chosen is None else layer.chosen.tolist(),
    }


def _layer_from_json(data: Mapping[str, Any], weights: Tensor) -> LayerView:
    return LayerView(
        data["path"],
        data["kind"],
        weights,
        _axis(data["rows"]),
        _axis(data["columns"]),
        [Equation(**equation) for equation in data["equations"]],
        None if data["chosen"] is None else torch.tensor(data["chosen"]),
    )


def _axis(data: Mapping[str, Any]) -> Axis:
    grid = data["grid"]
    return Axis(data["name"], list(data["labels"]), None if grid is None else (grid[0], grid[1]))
