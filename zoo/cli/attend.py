"""``zoo attend``: what a saved model attends to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.completion import complete_sampler
from zoo.cli.examples import example_inputs, node_names, open_examples
from zoo.cli.inputs import parse_ids
from zoo.cli.output import DataOption, ModelArgument, format_bytes, parse_data, parse_yaml
from zoo.cli.run_options import BaseOption, DeviceOption, default_device
from zoo.cli.terminal import console

if TYPE_CHECKING:
    from zoo.inspection.saving import SavedView
    from zoo.interfaces import Model

_LARGE_BYTES = 50_000_000
EXAMPLE = "zoo attend tatoeba-por-eng-transformer 'A casa é bonita.' -o attention.html"


def command(
    model: ModelArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="A text, or a file of an image or audio, as the model takes it; KEY=VALUE for "
            "each input of a model with several.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--save",
            "-o",
            metavar="FILE",
            help="Save as .html, .png, .svg or .json; printed in the terminal if not set.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The output of the model, instead of a generated one."),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Show only layers that match, such as 'decoder.*.cross'. Repeatable.",
        ),
    ] = None,
    heads: Annotated[
        str | None, typer.Option(metavar="N,N", help="Show only these heads, such as 1,4.")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="Sampler; default: the sampler of the model's spec.",
            autocompletion=complete_sampler,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="Tokens that the output starts with, such as the target language."),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of generated tokens; default: 64.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    ids: Annotated[
        bool,
        typer.Option("--ids", help="Read INPUT, --output and --prompt as token IDs."),
    ] = False,
    data: DataOption = None,
    example: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of the example of --data.")
    ] = 1,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compute a saved .html or .json file again, given in place of MODEL, and compare "
            "it. An INPUT is the model, if the stored one is not found.",
        ),
    ] = False,
    base: BaseOption = None,
    device: DeviceOption = None,
) -> None:
    """Show what a model attends to: heat maps, overlays on images, glimpses, graphs and memories.

    A model with a source generates its output, and the weights of the winning hypothesis are shown.
    A language model shows its prompt, and continues it with --sampler or --max-length. In the
    terminal, weights are averaged over heads, and the last layer is shown; choose others with
    --layers and --heads. Pictures of many layers have thumbnails; those of chosen layers have the
    full resolution. --data reads an example of a dataset, such as a graph.
    """
    from zoo.hub.models import load
    from zoo.inspection.attending import view_output
    from zoo.inspection.passes import OutputOptions
    from zoo.inspection.saving import check_suffix, save_view, select_layers

    if verify:
        _verify(Path(model), inputs[0] if inputs else None, default_device(device))
        return
    if bool(inputs) == bool(data):
        raise typer.BadParameter("expected either INPUT or --data KEY=VALUE")
    if file is not None:
        check_suffix(file)
    loaded = load(model, base=base, device=default_device(device))
    nodes = None
    if data:
        value, nodes = _read_example(loaded, model, parse_data(data), example)
    else:
        value = _parse_inputs(inputs or [], ids=ids)
    options = OutputOptions(
        output=parse_ids(output) if ids and output is not None else output,
        sampler=None if sampler is None else parse_yaml(sampler, "--sampler"),
        prompt=parse_ids(prompt) if ids and prompt is not None else prompt,
        max_length=max_length,
        seed=seed,
    )
    view = view_output(loaded, value, options, source=model, nodes=nodes)
    if layers or heads:
        view = select_layers(view, layers or [], None if heads is None else _parse_heads(heads))
    if file is None:
        _print_view(view, is_chosen=bool(layers))
        return
    save_view(view, file)
    print(f"saved {file}")
    size = file.stat().st_size
    if size > _LARGE_BYTES:
        hint = "--layers and --heads save less, and .html pools long inputs"
        print(f"note: {file} has {format_bytes(size)}; {hint}", file=sys.stderr)


def _print_view(view: SavedView, *, is_chosen: bool) -> None:
    from zoo.inspection.saving import select_layers
    from zoo.inspection.terminal import choose_layers, other_layers, render_view

    out = console()
    texts = [value for value in view.inputs.values() if isinstance(value, str)]
    line = " ".join([f"{view.model}:", *texts]) if texts else view.model
    out.print(line if view.output is None else f"{line} → {view.output}", markup=False)
    paths = [layer.path for layer in view.layers] if is_chosen else choose_layers(view)
    for text in render_view(select_layers(view, paths), out.width):
        out.print(text, soft_wrap=True)
    if others := other_layers(view, paths):
        out.print(f"\nother layers, shown with --layers: {', '.join(others)}", markup=False)


def _verify(path: Path, model: str | None, device: str) -> None:
    from zoo.errors import ZooError
    from zoo.inspection.verification import read_stored, verify

    found = verify(read_stored(path), model=model, device=device)
    if not found.ok:
        raise ZooError(f"{path} differs from the model:\n{found}")
    print(f"{path}: {found}")


def _read_example(
    model: Model, source: str, data: dict[str, Any], number: int
) -> tuple[dict[str, Any], list[str] | None]:
    """Return the inputs of an example, and the names of its nodes if it is a graph."""
    from zoo.errors import ZooError

    examples = open_examples(source, data)
    if number > len(examples):
        raise ZooError(f"--example {number}: the dataset has {len(examples):,} examples")
    return example_inputs(model, examples[number - 1]), node_names(examples, number - 1)


def _parse_inputs(texts: list[str], *, ids: bool) -> Any:
    """Return the input of a model, or the inputs by key."""
    from zoo.errors import ZooError

    if len(texts) == 1:
        return parse_ids(texts[0]) if ids else texts[0]
    pairs = [text.partition("=") for text in texts]
    if not all(equals and key.isidentifier() for key, equals, _ in pairs):
        raise ZooError(
            f"{len(texts)} inputs were given, but one is shown at a time; put a text into quotes, "
            "or write KEY=VALUE for each input of a model with several"
        )
    return {key: parse_ids(value) if ids else value for key, _, value in pairs}


def _parse_heads(text: str) -> list[int]:
    from zoo.errors import ZooError

    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ZooError(f"--heads {text}: expected numbers from 1, such as 1,4") from None
