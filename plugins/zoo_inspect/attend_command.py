"""``zoo attend``: what a saved model attends to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_sampler
from zoo.cli.inputs import parse_ids, warn_unknown
from zoo.cli.output import DataOption, ModelArgument, format_bytes, parse_data, parse_yaml
from zoo.cli.run_options import BaseOption, DeviceOption, default_device
from zoo.cli.terminal import console
from zoo_inspect.attend_inputs import describe_inputs, parse_inputs, read_example

if TYPE_CHECKING:
    from zoo.interfaces import Model
    from zoo_inspect.saving import SavedView

_LARGE_BYTES = 50_000_000


def command(
    model: ModelArgument,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="A text, or a file of an image or audio, as the model takes it; KEY=VALUE for "
            "each input of a model with several, and for each text of a list.",
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
    from zoo_inspect.attending import view_output
    from zoo_inspect.passes import OutputOptions
    from zoo_inspect.saving import check_path, save_view, select_layers

    if verify:
        _verify(Path(model), inputs[0] if inputs else None, default_device(device))
        return
    if inputs and data:
        raise typer.BadParameter("expected either INPUT or --data KEY=VALUE, not both")
    if file is not None:
        check_path(file)
    loaded = _load(model, base, default_device(device))
    nodes = None
    if data:
        value, nodes = read_example(loaded, model, parse_data(data), example)
    elif inputs:
        value = parse_inputs(loaded, inputs, ids=ids)
    else:
        raise typer.BadParameter(f"expected an input: {describe_inputs(loaded, model)}")
    if isinstance(value, str):
        warn_unknown(loaded, [value])
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


def _load(source: str, base: str | None, device: str) -> Model:
    """Load a model; name the arguments if a file in its place is not one."""
    from zoo.errors import ArtifactError, ZooError
    from zoo.hub.models import load

    path = Path(source)
    if path.is_file() and path.suffix.lower() in (".html", ".json"):
        raise ZooError(f"{path} is not a model; a saved view is computed again with --verify")
    try:
        return load(source, base=base, device=device)
    except ArtifactError as error:
        if not path.is_file() or path.suffix == ".safetensors":
            raise
        raise ZooError(f"{error}; the model comes first: zoo attend MODEL INPUT") from None


def _print_view(view: SavedView, *, is_chosen: bool) -> None:
    from zoo_inspect.saving import select_layers
    from zoo_inspect.terminal import other_layers, render_view
    from zoo_inspect.view import choose_layers

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
    from zoo_inspect.verification import read_stored, verify

    found = verify(read_stored(path), model=model, device=device)
    if not found.ok:
        raise ZooError(f"{path} differs from the model:\n{found}")
    print(f"{path}: {found}")


def _parse_heads(text: str) -> list[int]:
    from zoo.errors import ZooError

    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ZooError(f"--heads {text}: expected numbers from 1, such as 1,4") from None
