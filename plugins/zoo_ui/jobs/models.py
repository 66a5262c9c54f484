"""Jobs on models: load, run on an input, and show what they attend to."""

from __future__ import annotations

import base64
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zoo
from zoo.cli.predict import predict_lines
from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError, ZooWarning
from zoo.generation.prediction import can_predict
from zoo.generation.unknown_symbols import describe_unknown
from zoo.inspection.attending import view_output
from zoo.inspection.page import page_text
from zoo.inspection.passes import OutputOptions
from zoo.interfaces import Model

_MAX_MODELS = 2
_MAX_NEW_TOKENS = 64
_MAX_NAME = 80


def describe(session: dict[str, Any], *, model: str) -> dict[str, Any]:
    """Return what a model takes and computes."""
    loaded = _load(session, model)
    parameters = sum(parameter.numel() for parameter in loaded.parameters())
    return {
        "name": loaded.name,
        "parameters": parameters,
        "task": _task(loaded),
        "input": _input_content(loaded),
        "size": _input_size(loaded),
        "spec": loaded.spec,
    }


def run(session: dict[str, Any], *, model: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``zoo generate`` or ``zoo predict`` prints for one input."""
    loaded = _load(session, model)
    task = _task(loaded)
    if task == "none":
        raise ZooError(f"model '{loaded.name}' does not generate or predict from one input")
    with _input(value) as line, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ZooWarning)
        if task == "generate":
            unknown = describe_unknown(loaded, [line])
            results = zoo.generate(loaded, [line], max_length=_MAX_NEW_TOKENS)
            answer: dict[str, Any] = {"hypotheses": [vars(each) for each in results[0]]}
        else:
            unknown = None
            answer = predict_lines(loaded, [line])[0].as_json()
    messages = [str(each.message) for each in caught if issubclass(each.category, ZooWarning)]
    return {"task": task, **answer, "warnings": [*messages, *([unknown] if unknown else [])]}


def attend(session: dict[str, Any], *, model: str, value: Mapping[str, Any]) -> str:
    """Return the page of what ``zoo attend`` shows for one input."""
    loaded = _load(session, model)
    with _input(value) as line:
        return page_text(view_output(loaded, line, OutputOptions(), source=model))


def _load(session: dict[str, Any], name: str) -> Model:
    """Return a model; the two used last are kept."""
    models: dict[str, Model] = session.setdefault("models", {})
    model = models.pop(name, None) or zoo.load(name)
    models[name] = model
    for old in list(models)[:-_MAX_MODELS]:
        del models[old]
    return model


def _task(model: Model) -> str:
    if model.generation_input is not None:
        return "generate"
    return "predict" if can_predict(model) or can_predict(model, "position") else "none"


def _input_key(model: Model) -> str:
    return "target" if model.generation_input == "prompt" else "source"


def _input_content(model: Model) -> str:
    """Return the type of the input: text, image, audio, or array if it has no preprocessor."""
    preprocessor = build_preprocessors(model).get(_input_key(model))
    return "array" if preprocessor is None else preprocessor.content


def _input_size(model: Model) -> list[int] | None:
    """Return height and width of the images that a model takes, if it has a fixed size."""
    settings = ((model.spec or {}).get("preprocessing") or {}).get(_input_key(model)) or {}
    size = settings.get("size")
    return size if isinstance(size, list) and len(size) == 2 else None


@contextmanager
def _input(value: Mapping[str, Any]) -> Iterator[str]:
    """Give an input as the command line takes it: a text, or the path of a file.

    Args:
        value: ``{"text": ...}``, or ``{"file": ..., "content": ...}`` with the content in base64.
    """
    if "text" in value:
        yield str(value["text"])
        return
    name = Path(str(value["file"])).name[-_MAX_NAME:]
    with tempfile.TemporaryDirectory(prefix="zoo-ui-") as folder:
        path = Path(folder) / (name or "input")
        path.write_bytes(base64.b64decode(value["content"]))
        yield str(path)
