"""Inputs of models as the page sends them: a text, a file, or a dataset with an example of it."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zoo.cli.examples import open_examples
from zoo.errors import SpecError, ZooError
from zoo.evaluation.evaluating import training_section
from zoo.hub.models import read_header
from zoo.interfaces import Examples, Model
from zoo.spec.document import read_text

_MAX_NAME = 80
_FILE_KEYS = ("file", "nodes", "edges", "graphs")
"""The parameters of datasets that chosen files replace."""


@contextmanager
def open_line(value: Mapping[str, Any]) -> Iterator[str]:
    """Give an input as the command line takes it: a text, or the path of a file.

    Args:
        value: ``{"text": ...}``, or ``{"file": ..., "content": ...}`` with the content in base64.
    """
    if "text" in value:
        yield str(value["text"])
        return
    with tempfile.TemporaryDirectory(prefix="zoo-ui-") as folder:
        yield str(_write(value, Path(folder)))


@contextmanager
def open_dataset(model: str, value: Mapping[str, Any]) -> Iterator[tuple[Examples, int]]:
    """Give a dataset and the index of the example, as --data and --example name them.

    Args:
        model: the model; a run also knows its dataset.
        value: ``{"data": ..., "files": ..., "example": ...}``: parameters of the dataset as YAML,
            files by parameter as those of `open_line`, and the number of the example.
    """
    try:
        settings = read_text(str(value["data"]), "dataset").data or {}
    except SpecError as error:
        raise ZooError(str(error)) from None
    if not isinstance(settings, dict):
        raise ZooError("the dataset should be a mapping, such as 'type: graph'")
    files: Mapping[str, Any] = value.get("files") or {}
    with tempfile.TemporaryDirectory(prefix="zoo-ui-") as folder:
        if files:
            settings = {key: each for key, each in settings.items() if key not in _FILE_KEYS}
        for key, file in files.items():
            (Path(folder) / key).mkdir()
            settings[key] = str(_write(file, Path(folder) / key))
        examples = open_examples(model, settings)
        number = int(value.get("example") or 1)
        if not 1 <= number <= len(examples):
            raise ZooError(f"example {number}: the dataset has {len(examples):,} examples")
        yield examples, number - 1


def suggest_dataset(source: str, model: Model) -> dict[str, Any]:
    """Return parameters of a dataset to start with: those of the training, or of a graph."""
    train = training_section(read_header(source).provenance)
    for part in ("test", "validation", "data"):
        if isinstance(train.get(part), dict):
            return dict(train[part])
    return {"type": "graph", "split": "all"} if takes_graph(model) else {"type": "arrays"}


def takes_graph(model: Model) -> bool:
    """Return whether a model takes indices into another input, such as edges between nodes."""
    schema = model.batch_schema(inference=True) or {}
    return any(isinstance(field.below, str) for field in schema.values())


def _write(value: Mapping[str, Any], folder: Path) -> Path:
    path = folder / (Path(str(value["file"])).name[-_MAX_NAME:] or "input")
    path.write_bytes(base64.b64decode(value["content"]))
    return path
