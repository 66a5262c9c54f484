"""The input of ``zoo attend``: a value, KEY=VALUE for each key, or an example of a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zoo.cli.examples import example_inputs, node_names, open_examples
from zoo.cli.inputs import parse_ids
from zoo.errors import ZooError

if TYPE_CHECKING:
    from zoo.interfaces import Model

_CONTENTS = {
    "text": "a text",
    "texts": "texts",
    "image": "a file of an image",
    "audio": "a file of sound",
    "messages": "a text",
    "array": "a file of an array",
}
"""How the input of a preprocessor is written on the command line, by its content."""


def read_example(
    model: Model, source: str, data: dict[str, Any], number: int
) -> tuple[dict[str, Any], list[str] | None]:
    """Return the inputs of an example of a dataset, from 1, and the names of its nodes if it is a
    graph."""
    examples = open_examples(source, data)
    if number > len(examples):
        raise ZooError(f"--example {number}: the dataset has {len(examples):,} examples")
    return example_inputs(model, examples[number - 1]), node_names(examples, number - 1)


def parse_inputs(model: Model, texts: Sequence[str], *, ids: bool) -> Any:
    """Return the input of a model, or the inputs by key.

    Several values of a key that takes texts are its texts; a list in JSON is one, too.
    """
    contents = _find_contents(model)
    pairs = [text.partition("=") for text in texts]
    if not all(equals and key in contents for key, equals, _ in pairs):
        return _parse_value(contents, texts, ids=ids)
    values: dict[str, list[str]] = {}
    for key, _, value in pairs:
        values.setdefault(key, []).append(value)
    if missing := [key for key in contents if key not in values]:
        raise ZooError(f"there is no '{missing[0]}'; {_describe(contents)}")
    return {key: _parse_key(key, contents[key], each, ids=ids) for key, each in values.items()}


def describe_inputs(model: Model, source: str) -> str:
    """Return what to pass to a model, with the dataset that it was trained on as an example."""
    from zoo.evaluation.datasets import PARTS
    from zoo.evaluation.evaluating import training_section
    from zoo.hub.models import read_header

    train = training_section(read_header(source).provenance)
    known: list[Mapping[str, Any]] = [train[part] for part in PARTS if train.get(part)]
    options = " ".join(f"--data {option}" for option in _data_options(known[0] if known else {}))
    dataset = f"an example of a dataset with {options or '--data KEY=VALUE'}"
    return f"{_describe(_find_contents(model))}, or {dataset}"


def _find_contents(model: Model) -> dict[str, str | None]:
    """Return the content of each key that the input of a model has; None for arrays."""
    from zoo.data.preprocessing import build_preprocessors
    from zoo.generation.prediction import input_keys
    from zoo.generation.text_inputs import get_tokenizer

    preprocessors = build_preprocessors(model)
    if model.generation_input is not None:
        keys = {
            model.generation_input: "target" if model.generation_input == "prompt" else "source"
        }
    else:
        keys = {key: key for key in input_keys(model, preprocessors)}
    contents: dict[str, str | None] = {}
    for name, key in keys.items():
        text = "text" if get_tokenizer(model, key) else None
        contents[name] = preprocessors[key].content if key in preprocessors else text
    return contents


def _parse_value(contents: Mapping[str, str | None], texts: Sequence[str], *, ids: bool) -> Any:
    if len(texts) > 1:
        raise ZooError(
            f"{len(texts)} inputs were given, but one is shown at a time; put a text into quotes, "
            "or write KEY=VALUE for each input of a model with several"
        )
    if len(contents) > 1:
        raise ZooError(f"one value was given, but {_describe(contents)}, or --data KEY=VALUE")
    key, content = next(iter(contents.items()), ("source", None))
    return _parse_key(key, content, texts, ids=ids)


def _parse_key(key: str, content: str | None, values: Sequence[str], *, ids: bool) -> Any:
    if content == "texts" and not ids:
        is_list = len(values) == 1 and values[0].lstrip().startswith("[")
        return _parse_list(key, values[0]) if is_list else list(values)
    if len(values) > 1:
        raise ZooError(f"'{key}' has {len(values)} values, but takes one")
    return parse_ids(values[0]) if ids else values[0]


def _parse_list(key: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ZooError(f"'{key}' is not a list in JSON: {error.msg}") from None


def _describe(contents: Mapping[str, str | None]) -> str:
    """Return what a model takes, as arguments."""
    kinds = {
        key: "an array" if content is None else _CONTENTS.get(content, content)
        for key, content in contents.items()
    }
    if len(kinds) == 1:
        return f"the model takes {next(iter(kinds.values()))}"
    keys = " and ".join(f"'{key}' ({kind})" for key, kind in kinds.items())
    if None in contents.values():
        return f"the model takes {keys}"
    arguments = " ".join(f"'{key}=…'" for key in kinds)
    return f"the model takes {keys}; write {arguments}"


def _data_options(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the type of a dataset and the parameters that name its files, as --data takes them."""
    for key, value in data.items():
        if key == "type":
            yield f"type={str(value).rpartition(':')[2]}"
        elif isinstance(value, str) and "." in value:
            yield f"{key}=FILE"
