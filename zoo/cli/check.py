"""``zoo check``: a spec's tree with shapes and sizes, or everything wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zoo.cli.output import Json, Set, SpecArgument, console, human, print_json, print_table, table
from zoo.errors import SpecError

if TYPE_CHECKING:
    from rich.table import Table

    from zoo.spec.report import Part, Report

EXAMPLE = "zoo check bahdanau-2015 --set model.encoder.hidden=64"


def command(spec: SpecArgument, overrides: Set = None, as_json: Json = False) -> None:
    """Check a spec without allocating weights, and print its tree of parts."""
    from zoo.spec.composition import check

    try:
        report = check(spec, overrides=overrides or ())
    except SpecError as error:
        if not as_json:
            raise
        problems = [problem.as_json() for problem in error.problems]
        print_json({"ok": False, "errors": problems})
        raise typer.Exit(1) from None
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)


def _print(report: Report) -> None:
    columns = ("part", "type", "output", "parameters", "bytes")
    rows = table(*columns, whole=columns, right=("parameters", "bytes"))
    _fill(rows, report.tree, "", "")
    print_table(rows)
    total = f"{report.parameters:,} parameters, {human(report.bytes)}"
    console().print(f"\n[bold green]ok[/]  {report.name}: {total}")


def _fill(rows: Table, part: Part, lead: str, below: str) -> None:
    name = part.path.rpartition(".")[2]
    times = f" x{part.count}" if part.count > 1 else ""
    rows.add_row(
        f"[dim]{lead}[/]{name}{times}",
        f"[cyan]{part.type}[/]",
        (part.shape or "").replace("[", r"\["),
        f"{part.parameters:,}" if part.parameters else "",
        human(part.bytes) if part.bytes else "",
    )
    for index, child in enumerate(part.children):
        last = index == len(part.children) - 1
        branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        _fill(rows, child, below + branch, below + trunk)
