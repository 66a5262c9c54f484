"""``zoo diff``: what differs between two specs or models."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.completion import complete_model_or_spec
from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.run_options import DeviceOption, default_device
from zoo.errors import Place, ZooError

if TYPE_CHECKING:
    from zoo_diff.comparing import Difference
    from zoo_diff.outputs import OutputDifferences
    from zoo_diff.settings import SettingDifference
    from zoo_diff.tensors import Distance, TensorDifference, TensorDifferences

DIFFERENT, FAILED = 1, 2
"""Exit codes, as those of ``diff``."""


class Section(StrEnum):
    """What is compared."""

    settings = "settings"
    tensors = "tensors"
    outputs = "outputs"


def _side(name: str) -> Any:
    return typer.Argument(
        metavar=name,
        help="A spec or a model: a file or folder, the name of a shipped model or of a spec, or "
        "ORG/NAME on the Hub.",
        autocompletion=complete_model_or_spec,
    )


def command(
    a: Annotated[str, _side("A")],
    b: Annotated[str, _side("B")],
    only: Annotated[
        list[Section] | None, typer.Option(help="Compare only this. Repeatable.")
    ] = None,
    as_specs: Annotated[
        bool,
        typer.Option("--specs", help="Names are those of specs, also if such a model is shipped."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the weights of specs.")] = 0,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two specs or models: settings, tensors, and outputs on one example.

    Settings are those of the resolved specs, with the line of each value that a file sets. The
    model of a spec has the weights of --seed. The exit code is 0 if nothing differs, 1 if
    something does, 2 if they cannot be compared.
    """
    from zoo.cli.progress import task_progress
    from zoo_diff.comparing import SECTIONS, compare

    try:
        found = compare(
            *(a, b),
            only=only or SECTIONS,
            as_specs=as_specs,
            seed=seed,
            device=default_device(device),
            progress=task_progress,
        )
    except ZooError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(FAILED) from None
    if as_json:
        print_json(found.as_json())
    else:
        _print(found)
    raise typer.Exit(0 if found.equal else DIFFERENT)


def _print(found: Difference) -> None:
    for label, (name, kind) in (("A", found.a), ("B", found.b)):
        print(f"{label}  {kind} {name}")
    if found.settings is not None:
        _print_settings(found.settings)
    if found.tensors is not None:
        _print_tensors(found.tensors)
    if found.outputs is not None:
        _print_outputs(found.outputs)
    print(f"\n{'equal' if found.equal else 'different'}")


def _print_settings(settings: Sequence[SettingDifference]) -> None:
    print(f"\nsettings: {f'{len(settings)} differ' if settings else 'equal'}")
    rows = [
        (each.path, _format_value(each.a, each.a_place), _format_value(each.b, each.b_place))
        for each in settings
    ]
    if rows:
        print_rows(("path", "A", "B"), rows)


def _format_value(value: Any, place: Place | None) -> str:
    """Return a value as in a spec, and the line that sets it."""
    from zoo_diff.settings import ABSENT

    if value is ABSENT:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if place is None or place.line is None:
        return text or '""'
    path = os.path.relpath(place.file)
    shown = os.path.basename(place.file) if path.startswith("..") else path
    return f"{text}  ({shown}:{place.line})"


def _print_tensors(tensors: TensorDifferences) -> None:
    counts = [
        f"{tensors.same:,} equal" + (f" ({tensors.same_hash:,} by hash)" * bool(tensors.same_hash)),
        *_count(tensors.changed, "differ"),
        *_count(tensors.only_a, "only in A"),
        *_count(tensors.only_b, "only in B"),
        *_count(tensors.not_compared, "without values"),
    ]
    print(f"\ntensors: {', '.join(counts)}")
    rows = [_tensor_cells(each) for each in tensors.changed]
    rows += [(name, "present", "-", "", "") for name in tensors.only_a]
    rows += [(name, "-", "present", "", "") for name in tensors.only_b]
    if rows:
        columns = ("tensor", "A", "B", "difference", "relative")
        print_rows(columns, rows, right=columns[3:])


def _count(names: Sequence[Any], label: str) -> Iterator[str]:
    if names:
        yield f"{len(names):,} {label}"


def _tensor_cells(each: TensorDifference) -> tuple[str, ...]:
    row = each.as_json()
    sides = [f"{row[side]['dtype']} {row[side]['shape']}" for side in ("a", "b")]
    return (each.name, *sides, *_format_distance(each.distance))


def _format_distance(distance: Distance | None) -> tuple[str, str]:
    if distance is None:
        return "shape", ""
    return f"{distance.absolute:.3g}", f"{distance.relative:.3g}"


def _print_outputs(outputs: OutputDifferences) -> None:
    if outputs.reason:
        print(f"\noutputs: not compared: {outputs.reason}")
        return
    print(f"\noutputs of one example: {'equal' if outputs.equal else 'different'}")
    rows = []
    for name, shapes in outputs.shapes.items():
        cells = _format_distance(outputs.distances[name])
        rows.append((name, *map(str, shapes), *cells))
    columns = ("output", "A", "B", "difference", "relative")
    print_rows(columns, rows, right=columns[3:])
