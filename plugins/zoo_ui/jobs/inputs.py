"""Inputs of models as the page sends them: a text, a file, or a dataset with an example of it."""

from __future__ import annotations

import base64
import re
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
from zoo_ui.bodies import read_fields

_MAX_NAME_BYTES = 120
_FILE_KEYS = ("file", "nodes", "edges", "graphs")
"""The parameters of datasets that chosen files replace."""


@contextmanager
def open_line(value: Mapping[str, Any]) -> Iterator[str]:
    """Give an input as the command line takes it: a text, or the path of a file.

    Args:
        value: ``{"text": ...}``, or ``{"file": ..., "content": ...}`` with the content in base64.
    """
    if "text" in value:
        (text,) = read_fields(value, text=str)
        yield text
        return
    with _files({"file": value}) as paths:
        yield str(paths["file"])


@contextmanager
def open_dataset(model: str, value: Mapping[str, Any]) -> Iterator[tuple[Examples, int]]:
    """Give a dataset and the index of the example, as --data and --example name them.

    Args:
        model: the model; a run also knows its dataset.
        value: ``{"data": ..., "files": ..., "example": ...}``: parameters of the dataset as YAML,
            files by parameter as those of `open_line`, and the number of the example.
    """
    value = {"files": {}, "example": 1, **value}
    data, files, number = read_fields(value, data=str, files=dict, example=int)
    unknown = [key for key in files if key not in _FILE_KEYS]
    if unknown:
        known = ", ".join(f"'{key}'" for key in _FILE_KEYS)
        raise ZooError(f"'{unknown[0]}' is not a file of a dataset; files are {known}")
    try:
        settings = read_text(data, "dataset").data or {}
    except SpecError as error:
        raise ZooError(str(error)) from None
    if not isinstance(settings, dict):
        raise ZooError("the dataset should be a mapping, such as 'type: graph'")
    if files:
        settings = {key: each for key, each in settings.items() if key not in _FILE_KEYS}
    with _files(files) as paths:
        examples = open_examples(model, settings | {key: str(paths[key]) for key in paths})
        if not 1 <= number <= len(examples):
            raise ZooError(f"example {number}: the dataset has {len(examples):,} examples")
        yield examples, number - 1


@contextmanager
def _files(values: Mapping[str, Any]) -> Iterator[dict[str, Path]]:
    """Give the paths of files by key, each in a folder of its own, until the end of the block.

    Errors name a file as the user does, who does not know where it is kept.
    """
    with tempfile.TemporaryDirectory(prefix="zoo-ui-") as folder:
        paths = {}
        for number, (key, value) in enumerate(values.items()):
            inner = Path(folder) / str(number)
            inner.mkdir()
            paths[key] = _write(value, inner)
        try:
            yield paths
        except ZooError as error:
            message = str(error)
            for path in paths.values():
                message = message.replace(f"{path.parent}/", "")
            raise ZooError(message) from None


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


def _write(value: Any, folder: Path) -> Path:
    name, content = read_fields(value, file=str, content=str)
    name = _kept_name(name)
    try:
        data = base64.b64decode(content, validate=True)
    except ValueError:
        raise ZooError(f"the content of {name} is not valid base64") from None
    path = folder / name
    path.write_bytes(data)
    return path


def _kept_name(name: str) -> str:
    """Return the last part of a name, and of a long one its end, which has the suffix."""
    last = re.split(r"[/\\]", name.replace("\0", ""))[-1]
    kept = last.encode()[-_MAX_NAME_BYTES:].decode(errors="ignore")
    return "input" if kept in ("", ".", "..") else kept
