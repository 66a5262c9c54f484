"""Views as files: pages, pictures and JSON."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from zoo.errors import ZooError
from zoo.files import atomic_write, os_error_message
from zoo_inspect.page import page_text, write_page
from zoo_inspect.stored import to_json, weights_to_json
from zoo_inspect.view import View

AnyView = TypeVar("AnyView", bound=View)


class SavedView(View):
    """A view that can be saved, and is shown as a page in notebooks."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the view: .html, .png, .svg or .json."""
        save_view(self, Path(path))

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        text = html.escape(page_text(self), quote=True)
        return f'<iframe srcdoc="{text}" style="width:100%;height:640px;border:0"></iframe>'


def save_view(view: View, path: Path) -> None:
    """Save a view in the format of the file's suffix, atomically.

    Raises:
        ZooError: if the suffix is not one of .html, .png, .svg and .json, or a text is not UTF-8.
    """
    check_path(path)
    _check_texts(view)
    _WRITERS[path.suffix.lower()](view, path)


def _check_texts(view: View) -> None:
    """Raise ZooError if a text of a view has half of a surrogate pair, as one that is not UTF-8."""
    axes = [axis for layer in view.layers for axis in (layer.rows, layer.columns)]
    labels = [label for axis in axes for label in axis.labels]
    inputs = [value for value in view.inputs.values() if isinstance(value, str)]
    try:
        "".join([view.model, view.output or "", *inputs, *labels]).encode()
    except UnicodeEncodeError as error:
        raise ZooError(
            f"the view cannot be saved: {error.object[error.start]!a} is half of a surrogate pair, "
            "which UTF-8 cannot encode"
        ) from None


def check_path(path: Path) -> None:
    """Raise ZooError if no format has the suffix of a file, or its folder does not exist."""
    if path.suffix.lower() not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise ZooError(f"{path} has no known suffix; a view is saved as one of {known}")
    if not path.parent.is_dir():
        raise ZooError(f"{path} cannot be written: there is no folder {path.parent}")


def select_layers(
    view: AnyView, patterns: Sequence[str] = (), heads: Sequence[int] | None = None
) -> AnyView:
    """Return the view with the layers whose paths match, and with chosen heads, from 1.

    Args:
        patterns: such as "decoder.*.cross"; all layers if empty.

    Raises:
        ZooError: if no layer matches, or a layer does not have a head.
    """
    chosen = [
        layer
        for layer in view.layers
        if not patterns or any(fnmatchcase(layer.path, pattern) for pattern in patterns)
    ]
    if not chosen:
        paths = ", ".join(layer.path for layer in view.layers)
        raise ZooError(f"no layer matches {' or '.join(patterns)}; layers are {paths}")
    if heads is None:
        return replace(view, layers=chosen)
    for layer in chosen:
        missing = [head for head in heads if not 1 <= head <= len(layer.weights)]
        if missing:
            raise ZooError(f"{layer.path} has heads 1 to {len(layer.weights)}, not {missing[0]}")
    index = [head - 1 for head in heads]
    layers = [replace(layer, weights=layer.weights[index]) for layer in chosen]
    return replace(view, layers=layers, provenance={**view.provenance, "heads": list(heads)})


def _write_json(view: View, path: Path) -> None:
    data = {**to_json(view), "weights": weights_to_json(view)}
    _write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", path)


def _write_picture(view: View, path: Path) -> None:
    from zoo.plotting import render_svg, write_png
    from zoo_inspect.drawing import draw_view

    figure = draw_view(view)
    if path.suffix.lower() == ".png":
        write_png(figure, path)
    else:
        _write_text(render_svg(figure, text_as_paths=True), path)


def _write_text(text: str, path: Path) -> None:
    try:
        with atomic_write(path) as temp_path:
            Path(temp_path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{path} cannot be written: {os_error_message(error)}") from None


_WRITERS: Mapping[str, Callable[[View, Path], Any]] = {
    ".html": write_page,
    ".png": _write_picture,
    ".svg": _write_picture,
    ".json": _write_json,
}
