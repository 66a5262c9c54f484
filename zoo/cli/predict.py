"""``zoo predict``: the classes, labels or numbers that a saved model predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from zoo.cli.examples import example_inputs, open_examples
from zoo.cli.inputs import FileOption, InputsArgument, check_texts, read_inputs, warn_unknown
from zoo.cli.output import DataOption, JsonOption, ModelArgument, parse_data, print_json
from zoo.cli.progress import task_progress
from zoo.cli.run_options import BaseOption, DeviceOption, default_device

if TYPE_CHECKING:
    from zoo.interfaces import Examples, Model, Preprocessor

EXAMPLE = "zoo predict run 'a fine film'"
_BATCH = 32

_Item = tuple[str, Any, Sequence[str] | None]
"""What is printed as the input, the value that the model takes, and the names of its positions."""


class Row(NamedTuple):
    """The predictions of one input: one, or one for each position with its name."""

    input: str
    predictions: list[Any]
    names: Sequence[str] | None
    has_positions: bool
    from_dataset: bool = False

    def as_json(self) -> dict[str, Any]:
        if not self.has_positions:
            return {"input": self.input, **vars(self.predictions[0])}
        names: Sequence[str | None] = self.names or [None] * len(self.predictions)
        pairs = zip(names, self.predictions, strict=True)
        positions = [{"name": n, **vars(p)} for n, p in pairs]
        entities = self.entities()
        found = {} if entities is None else {"entities": entities}
        return {"input": self.input, **found, "positions": positions}

    def entities(self) -> list[dict[str, Any]] | None:
        """Return the entities of words with tags such as B-PER; None if the labels are others."""
        from zoo.data.entities import are_entity_tags, find_entities

        known = (label for each in self.predictions for label, _ in each.top)
        if self.names is None or not are_entity_tags(known):
            return None
        found = []
        for label, start, end in find_entities([each.label for each in self.predictions]):
            text = " ".join(self.names[start:end])
            probability = min(each.probability for each in self.predictions[start:end])
            row = {"label": label, "text": text, "start": start, "end": end}
            found.append({**row, "probability": probability})
        return found

    def lines(self) -> Iterator[str]:
        """Yield what is printed: a line, or a line for each entity or node of a graph."""
        if not self.has_positions:
            (one,) = self.predictions
            yield f"{self.input}  {one}" if self.from_dataset else str(one)
        elif (entities := self.entities()) is not None:
            for each in entities:
                yield f"{each['text']}  {each['label']} {each['probability']:.4f}"
            if not entities:
                yield "(no entities)"
        elif self.names is None:
            yield " ".join(each.label for each in self.predictions)
        else:
            for name, each in zip(self.names, self.predictions, strict=True):
                yield f"{name} {each}"


def command(
    model: ModelArgument,
    texts: InputsArgument = None,
    file: FileOption = None,
    data: DataOption = None,
    part: Annotated[
        str | None,
        typer.Option(help="Data of the training run: test, validation or data (training data)."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of classes in --json.")] = 5,
    base: BaseOption = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the class of texts, images, audio or graphs, of each token of a text, or of the nodes
    of a graph.

    A classifier prints the class and its probability, or the labels above 0.5 if it is multi-label;
    a regressor prints numbers, a tagger a line for each token, or for each entity if its labels are
    tags such as B-PER and O, a node classifier a line for each node of the graph of --data. The
    texts of a pair are separated by a tab. Lines of a dataset start with the file of the example.
    """
    from zoo.hub.models import load

    if data or part:
        if texts or file:
            raise typer.BadParameter("--data and --part cannot be combined with INPUT or --file")
        loaded = load(model, base=base, device=default_device(device))
        rows = _predict_dataset(loaded, model, parse_data(data or []), part, top)
    else:
        if not texts and file is None:
            raise typer.BadParameter(
                "expected INPUT, --file FILE, or the examples of a dataset: --data KEY=VALUE or "
                "--part test"
            )
        inputs = read_inputs(texts or [], file)
        loaded = load(model, base=base, device=default_device(device))
        check_texts(loaded, inputs)
        with inputs.report_lines():
            rows = predict_lines(loaded, inputs.lines, top)
    print_predictions(rows, as_json=as_json)


def print_predictions(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print the predictions of each input."""
    if as_json:
        print_json([row.as_json() for row in rows])
        return
    for row in rows:
        for line in row.lines():
            print(line)
        if row.names is not None and len(rows) > 1:
            print()


def predict_lines(model: Model, lines: Sequence[str], top: int = 5) -> list[Row]:
    """Predict the classes of texts, or of files of images or audio."""
    warn_unknown(model, lines)
    return _predict(model, ((line, line, None) for line in lines), len(lines), top)


def predict_example(model: Model, examples: Examples, index: int, top: int = 5) -> Row:
    """Predict the classes of an example of a dataset, or of its positions."""
    return _predict(model, [_example_item(model, examples, index)], 1, top)[0]


def _example_item(model: Model, examples: Examples, index: int) -> _Item:
    value = example_inputs(model, examples[index])
    return examples.origin(index), value, examples.position_names(index)


def _predict(model: Model, items: Iterable[_Item], count: int, top: int) -> list[Row]:
    with task_progress() as progress:
        return _predict_batches(
            model, items, top, lambda done: progress and progress("predictions", done, count)
        )


def _predict_batches(
    model: Model, items: Iterable[_Item], top: int, report: Callable[[int], object]
) -> list[Row]:
    from zoo.data.preprocessing import build_preprocessors
    from zoo.errors import InputError
    from zoo.generation.prediction import can_predict, predict, predict_positions

    has_positions = can_predict(model, "position")
    run: Any = predict_positions if has_positions else predict
    source = build_preprocessors(model).get("source") if has_positions else None
    rows: list[Row] = []
    rest = iter(items)
    while chunk := list(islice(rest, _BATCH)):
        try:
            results = run(model, [value for _, value, _ in chunk], top_k=top)
        except InputError as error:
            raise InputError(error.message, len(rows) + error.number) from None
        for (label, value, names), found in zip(chunk, results, strict=True):
            if not has_positions:
                rows.append(Row(label, [found], None, False))
                continue
            names = names or _token_names(source, value)
            fits = names is not None and len(names) == len(found)
            rows.append(Row(label, found, names if fits else None, True))
        report(len(rows))
    return rows


def _token_names(preprocessor: Preprocessor | None, value: Any) -> Sequence[str] | None:
    """Return the tokens or words of a text, or None if the model takes something else."""
    if preprocessor is None:
        return None
    return preprocessor.position_names(value["source"] if isinstance(value, dict) else value)


def _predict_dataset(
    model: Model, source: str, data: dict[str, Any], part: str | None, top: int
) -> list[Row]:
    """Predict the classes of the examples of a dataset."""
    examples = open_examples(source, data, part)
    items = (_example_item(model, examples, index) for index in range(len(examples)))
    rows = _predict(model, items, len(examples), top)
    return [row._replace(from_dataset=True) for row in rows]
