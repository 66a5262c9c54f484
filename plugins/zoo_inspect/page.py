"""Views as pages: one HTML file with its data, scripts and styles, which needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.about import version
from zoo.errors import ZooError
from zoo.files import atomic_write, os_error_message
from zoo_inspect.mathml import to_mathml
from zoo_inspect.quantised import MAX_ERROR, QUANTUM, Quantised, decode, encode
from zoo_inspect.stored import FORMAT, StoredFile, decode_value, from_json, to_json
from zoo_inspect.view import KIND_NAMES, LayerView, View, choose_layers

MAX_BYTES = 3_900_000
"""Bytes of the weights of a page; layers that exceed it are pooled."""
POOLED = 128
"""Largest number of rows and columns of a pooled layer."""
_SHARED = ("rows", "columns", "equations")
_DERIVED = ("summary", "first", "math", "kinds", "quantum")
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_START = '\nmountPage(document.getElementById("view"), document.getElementById("data"));\n'


def page_text(view: View) -> str:
    """Return the page of a view."""
    data = json.dumps(page_data(view), ensure_ascii=False, separators=(",", ":"))
    return _fill_template(view.model, data)


def _fill_template(model: str, data: str) -> str:
    style, script = read_asset("page.css"), read_asset("page.js") + _START
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(read_asset("page.html")).substitute(
        policy=policy,
        title=html.escape(f"Attention of {model}"),
        style=style,
        script=script,
        data=data.replace("<", "\\u003c"),  # an input can contain </script>
    )


def write_page(view: View, path: Path) -> None:
    """Write the page of a view, atomically."""
    text = page_text(view)
    try:
        with atomic_write(path) as temp_path:
            temp_path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be written: {os_error_message(error)}") from None


def read_page(path: Path) -> tuple[dict[str, Any], list[Tensor]]:
    """Return the data of a page, as `to_json` returns it, and the weights of each layer.

    ``tolerance`` of the data is the largest error of a weight, and ``pool`` of a layer the number
    of rows and columns of which each of its weights is the maximum. For a page of this version of
    the zoo, ``problems`` are the differences from the page that it writes for these data.

    Raises:
        ZooError: if the file is not a page of a view.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ZooError(f"{path} cannot be read: {error}") from None
    found = _DATA.search(text)
    try:
        data = json.loads(found[1]) if found else {}
        if found is None or data.get("format") != FORMAT:
            raise ZooError(f"{path} is not a page of 'zoo attend'")
        shared = data.pop("shared")
        derived = {key: data.pop(key) for key in _DERIVED}
        for layer in data["layers"]:
            layer |= {key: shared[layer[key]] for key in _SHARED}
        weights = [_from_stored(stored) for stored in data.pop("weights")]
        if data["provenance"].get("zoo") == version():
            own = json.loads(json.dumps(_derive(from_json(data, weights), data["inputs"])))
            differing = [key for key in _DERIVED if derived[key] != own[key]]
            problems = [f"'{key}' of the page differs" for key in differing]
            if text != _fill_template(data["model"], found[1]):
                problems.append("text, style or script of the page differs")
            data |= {"problems": problems} if problems else {}
        return data, weights
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ZooError(f"{path} is damaged: {error}") from None


def page_data(view: View) -> dict[str, Any]:
    """Return the data of a page, which `mountView` of page.js shows."""
    data = to_json(view)
    encoded = _encode_layers(view)
    shared: list[Any] = []
    for layer, (pool, _) in zip(data["layers"], encoded, strict=True):
        layer["pool"] = pool
        for key in _SHARED:
            if layer[key] not in shared:
                shared.append(layer[key])
            layer[key] = shared.index(layer[key])
    weights = [_to_stored(quantised) for _, quantised in encoded]
    tolerance = max((stored["error"] for stored in weights), default=0.0)
    return (
        data
        | _derive(view, data["inputs"])
        | {"shared": shared, "tolerance": max(tolerance, MAX_ERROR), "weights": weights}
    )


def _derive(view: View, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a page that are computed from its view and from its stored inputs."""
    restored = decode_value(json.loads(json.dumps(inputs)))
    texts = {equation.text for layer in view.layers for equation in layer.equations}
    return {
        "summary": _summarise(restored, view.output),
        "first": _first_layer(view),
        "math": {text: to_mathml(text) for text in sorted(texts)},
        "kinds": {layer.kind: KIND_NAMES[layer.kind] for layer in view.layers},
        "quantum": QUANTUM,
    }


def pool_weights(weights: Tensor, pool: tuple[int, int]) -> Tensor:
    """Return the maximum [H, T', S'] of each block of rows and columns of weights [H, T, S]."""
    if pool == (1, 1):
        return weights
    return F.max_pool2d(weights[None], pool, ceil_mode=True)[0]


def read_asset(name: str) -> str:
    """Return a file of the page: page.js, page.css or page.html."""
    return (files("zoo_inspect") / "assets" / name).read_text(encoding="utf-8")


def _encode_layers(view: View) -> list[tuple[tuple[int, int], Quantised]]:
    """Return how each layer is pooled and its weights.

    Layers that have more rows or columns than `POOLED` are pooled, and then replaced by those of
    full resolution, as long as the page has room for them: the one that is shown first, and then
    the others in the order of the model.
    """
    for layer in view.layers:
        if not layer.weights.isfinite().all():
            raise ZooError(f"the weights of '{layer.path}' are not finite, so they are not shown")
    pools = [_pooling(layer) for layer in view.layers]
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        pairs = list(zip(view.layers, pools, strict=True))
        encoded = list(
            threads.map(lambda pair: encode(pool_weights(pair[0].weights, pair[1])), pairs)
        )
    left = MAX_BYTES - sum(_stored_bytes(each) for each in encoded)
    first = _first_layer(view)
    for index in sorted(range(len(encoded)), key=lambda index: index != first):
        layer = view.layers[index]
        left += _stored_bytes(encoded[index])
        if pools[index] != (1, 1) and layer.weights.numel() // 8 < left:  # at least one bit each
            full = encode(layer.weights)
            if _stored_bytes(full) <= left:
                encoded[index], pools[index] = full, (1, 1)
        left -= _stored_bytes(encoded[index])
    return list(zip(pools, encoded, strict=True))


def _pooling(layer: LayerView) -> tuple[int, int]:
    if layer.kind == "edges":
        return 1, 1
    _, T, S = layer.weights.shape
    return max(1, -(-T // POOLED)), max(1, -(-S // POOLED))


def _stored_bytes(quantised: Quantised) -> int:
    return len(quantised.data) * 4 // 3


def _first_layer(view: View) -> int:
    """Return the index of the layer that is shown first, which is that of the terminal."""
    return [layer.path for layer in view.layers].index(choose_layers(view)[0])


def _summarise(inputs: Mapping[str, Any], output: str | None) -> list[tuple[str, str]]:
    """Return the inputs and the output as text, for the head of the page."""
    texts = [(role, _describe(value)) for role, value in inputs.items()]
    return texts if output is None else [*texts, ("output", output)]


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, StoredFile):
        return value.name
    if isinstance(value, list | tuple) and any(hasattr(each, "shape") for each in value):
        return ", ".join(_describe(each) for each in value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return " · ".join(value)
    shape = getattr(value, "shape", None)
    return str(value) if shape is None else f"array of shape {list(shape)}"


def _to_stored(quantised: Quantised) -> dict[str, Any]:
    return {
        "shape": list(quantised.shape),
        "scale": quantised.scale,
        "offset": quantised.offset,
        "error": quantised.error,
        "data": base64.b64encode(quantised.data).decode(),
    }


def _from_stored(stored: Mapping[str, Any]) -> Tensor:
    return decode(
        Quantised(
            tuple(stored["shape"]),
            stored["scale"],
            stored["offset"],
            stored["error"],
            base64.b64decode(stored["data"]),
        )
    )


def _hash(text: str) -> str:
    """Return the hash of an inline script or style, as content security policies have it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
