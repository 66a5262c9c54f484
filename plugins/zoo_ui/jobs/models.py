"""Jobs on models: load, run on an input, and show what they attend to."""

from __future__ import annotations

import warnings
from typing import Any

import zoo
from zoo.cli.examples import example_inputs, node_names
from zoo.cli.predict import predict_example, predict_lines
from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError, ZooWarning
from zoo.generation.prediction import can_predict
from zoo.generation.text_inputs import describe_unknown
from zoo.interfaces import Model
from zoo_inspect.attending import view_output
from zoo_inspect.page import page_text
from zoo_inspect.passes import OutputOptions
from zoo_ui.bodies import load_json, read_fields
from zoo_ui.jobs.inputs import open_dataset, open_line, suggest_dataset, takes_graph

_MAX_MODELS = 2
_MAX_NEW_TOKENS = 64
_MAX_POSITIONS = 500


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
        "data": suggest_dataset(model, loaded) if _takes_dataset(loaded) else None,
        "spec": loaded.spec,
    }


def run(session: dict[str, Any], *, body: bytes) -> dict[str, Any]:
    """Return what ``zoo generate`` or ``zoo predict`` prints for one input.

    Of an example with many positions, such as a graph, only the first are returned; ``total`` is
    their number.

    Args:
        body: the model and its input, as JSON.
    """
    model, value = read_fields(load_json(body), model=str, input=dict)
    loaded = _load(session, model)
    task = _task(loaded)
    if task == "none":
        raise ZooError(f"model '{loaded.name}' does not generate or predict from one input")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ZooWarning)
        if "data" in value:
            with open_dataset(model, value) as (examples, index):
                answer, unknown = predict_example(loaded, examples, index).as_json(), None
        else:
            with open_line(value) as line:
                answer, unknown = _run_line(loaded, task, line)
    if "positions" in answer:
        answer["total"] = len(answer["positions"])
        answer["positions"] = answer["positions"][:_MAX_POSITIONS]
    messages = [str(each.message) for each in caught if issubclass(each.category, ZooWarning)]
    return {"task": task, **answer, "warnings": [*messages, *([unknown] if unknown else [])]}


def _run_line(model: Model, task: str, line: str) -> tuple[dict[str, Any], str | None]:
    """Return the hypotheses or the prediction of a line, and the symbols the model ignores."""
    if task == "predict":
        return predict_lines(model, [line])[0].as_json(), None
    unknown = describe_unknown(model, [line])
    results = zoo.generate(model, [line], max_length=_MAX_NEW_TOKENS)
    return {"hypotheses": [vars(each) for each in results[0]]}, unknown


def attend(session: dict[str, Any], *, body: bytes) -> str:
    """Return the page of what ``zoo attend`` shows for one input, as `run` takes it."""
    model, value = read_fields(load_json(body), model=str, input=dict)
    loaded = _load(session, model)
    if "data" in value:
        with open_dataset(model, value) as (examples, index):
            inputs, nodes = example_inputs(loaded, examples[index]), node_names(examples, index)
            view = view_output(loaded, inputs, OutputOptions(), source=model, nodes=nodes)
            return page_text(view)
    with open_line(value) as line:
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
    """Return the type of the input: text, image, audio, graph, or array without a preprocessor."""
    preprocessor = build_preprocessors(model).get(_input_key(model))
    if preprocessor is not None:
        return preprocessor.content
    return "graph" if takes_graph(model) else "array"


def _takes_dataset(model: Model) -> bool:
    """Return whether the inputs of a model are examples of a dataset, not what a page can make."""
    return model.generation_input is None and _input_content(model) in ("graph", "array")


def _input_size(model: Model) -> list[int] | None:
    """Return height and width of the images that a model takes, if it has a fixed size."""
    settings = ((model.spec or {}).get("preprocessing") or {}).get(_input_key(model)) or {}
    size = settings.get("size")
    return size if isinstance(size, list) and len(size) == 2 else None
