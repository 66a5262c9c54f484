"""``zoo check``: validate a spec, and print its parts or those of a model with shapes and sizes."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zoo.cli.output import (
    JsonOption,
    SetOption,
    SpecArgument,
    format_bytes,
    print_json,
    print_table,
    require_readable,
    spec_errors,
    table,
)
from zoo.cli.run_options import StartOption
from zoo.cli.terminal import console
from zoo.cli.verbosity import VerboseOption
from zoo.errors import ZooError, one_line

if TYPE_CHECKING:
    from rich.table import Table

    from zoo.spec.report import Report, ReportNode
    from zoo.training.start import StartPlan

EXAMPLE = "zoo check bahdanau-2015 --set model.encoder.hidden=64"


def command(
    spec: SpecArgument,
    overrides: SetOption = None,
    start: StartOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Validate a spec without allocating weights, and print its parts with shapes and sizes.

    If its training starts from the weights of a model, the parts that are taken are printed.
    --verbose prints why parts are not accelerated. Of a model with weights (a file, a run, a
    shipped name, or org/name) the parts are printed; the weights are not read.
    """
    texts = [*(overrides or ()), *([] if start is None else [f"train.start={json.dumps(start)}"])]
    with spec_errors(as_json=as_json), _gc_disabled():
        require_readable(spec)
        is_model = _is_model(spec)
        if is_model and texts:
            raise ZooError(f"{spec} is a model with weights; --set and --from are for specs")
        report, plan = (_report_model(spec), None) if is_model else check_spec(spec, texts)
    if as_json:
        print_json(report.as_json() | {"start": plan.record() if plan else None})
    else:
        _print(report, plan, verbose=verbose)
        if not is_model:
            _print_next(spec)


def _is_model(name: str) -> bool:
    """Return whether a name is that of a model with weights; specs of plugins take precedence."""
    if name.endswith((".yaml", ".yml")):
        return False
    if name.endswith(".safetensors"):
        return True
    if os.path.exists(name):
        files = ("model.safetensors", "model.safetensors.index.json")
        return any(os.path.isfile(os.path.join(name, file)) for file in files)
    from zoo.registry.component_registry import default_registry

    if any(file.name == name for plugin in default_registry().plugins for file in plugin.specs):
        return False
    from zoo.hub.shipped import is_shipped
    from zoo.spec.extending import REPOSITORY

    is_in_folder = os.path.isdir(os.path.dirname(name))
    return is_shipped(name) or (REPOSITORY.fullmatch(name) is not None and not is_in_folder)


def _report_model(name: str) -> Report:
    """Return the report of a model with weights."""
    from zoo.artifact.report import report_model
    from zoo.hub.models import read_header

    return report_model(read_header(name))


def check_spec(spec: str, overrides: Iterable[str]) -> tuple[Report, StartPlan | None]:
    """Validate a spec without importing the compiler of torch; return its report, and what its
    training takes from a base."""
    from zoo.spec.meta import skip_dynamo_import
    from zoo.training.composing import check_started

    with skip_dynamo_import():
        return check_started(spec, overrides=overrides)[1:]


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable garbage collection, which takes a fifth of the time of a check in imports."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Moves all objects to the oldest generation, so that they are not scanned at once.
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _print(report: Report, plan: StartPlan | None, *, verbose: bool) -> None:
    from rich.text import Text

    columns = ("part", "type", "output", "parameters", "bytes")
    rows = table(*columns, no_wrap=columns, right=("parameters", "bytes"))
    _add_rows(rows, report.tree, "", "")
    print_table(rows)
    if any(part.shape for part in report.tree.walk()):
        console().print("\nB batch, S source length, T other lengths", style="dim")
    _print_paths(report, verbose=verbose)
    if report.init:
        count = f"{report.init.parameters:,} of {report.parameters:,} parameters"
        console().print(f"\ninit  [cyan]{report.init.type}[/]: {count}", highlight=False)
    trained = report.trained.lines() if report.trained else ()
    for index, line in enumerate([*(plan.lines() if plan else ()), *trained]):
        console().print("\n" * (index == 0) + one_line(line), markup=False, soft_wrap=True)
    total = f"{report.parameters:,} parameters, {format_bytes(report.bytes)}"
    console().print(
        Text.assemble("\n", ("ok", "bold green"), f"  {one_line(report.name)}: {total}")
    )


def _print_next(spec: str) -> None:
    """Print the commands of plugins that continue with the same spec."""
    from zoo.registry.component_registry import default_registry

    for plugin in default_registry().plugins:
        for each in plugin.commands:
            if each.after == "check":
                text = one_line(f"zoo {each.name} {spec}: {each.help}")
                console().print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def _print_paths(report: Report, *, verbose: bool) -> None:
    """Print which parts are accelerated; with `verbose`, also why others are not."""
    out = console()
    shown = [path for path in report.paths if verbose or None in (path.evaluation, path.training)]
    if shown:
        out.print(f"\naccelerations on {report.paths[0].device}", style="dim")
    for path in shown:
        names = ", ".join(one_line(name) or "model" for name in path.modules)
        line = f"{path.acceleration}  [cyan]{names}[/]: {one_line(path.describe())}"
        out.print(line, soft_wrap=not out.is_terminal)


def _add_rows(rows: Table, part: ReportNode, prefix: str, child_prefix: str) -> None:
    from rich.text import Text

    name = part.path.rpartition(".")[2]
    times = f" x{part.count}" if part.count > 1 else ""
    rows.add_row(
        Text.assemble((prefix, "dim"), one_line(f"{name}{times}")),
        Text(one_line(part.type), style="cyan"),
        Text(part.shape or ""),
        f"{part.parameters:,}" if part.parameters else "",
        format_bytes(part.bytes) if part.bytes else "",
    )
    for index, child in enumerate(part.children):
        last = index == len(part.children) - 1
        branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        _add_rows(rows, child, child_prefix + branch, child_prefix + trunk)
