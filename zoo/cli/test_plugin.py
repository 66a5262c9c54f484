"""``zoo test-plugin``: the laws, tried on what a plugin offers."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import JsonOption, console, print_json, print_table, table

if TYPE_CHECKING:
    from zoo.testing import Outcome

EXAMPLE = "zoo test-plugin luong"


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The plugin, as 'zoo plugins' lists it.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Try every law of its kind on each component of a plugin; exit code 1 if one is broken."""
    from rich.console import Console
    from rich.progress import track

    from zoo.errors import RegistryError, suggest
    from zoo.registry.component_registry import default_registry
    from zoo.testing import run_laws

    found = [plugin for plugin in default_registry().plugins if plugin.name == name]
    if not found:
        known = [plugin.name for plugin in default_registry().plugins]
        raise RegistryError(f"no plugin named '{name}' is installed{suggest(name, known)}")
    faults = [fault for plugin in found for fault in plugin.faults]
    entries = [entry for plugin in found for entry in plugin.entries]
    outcomes: list[Outcome] = []
    quiet = as_json or not sys.stderr.isatty()
    seen = Console(stderr=True)
    for entry in track(entries, "trying laws", transient=True, console=seen, disable=quiet):
        outcomes += run_laws(entry.cls)
    if as_json:
        print_json({"faults": faults, "outcomes": [vars(outcome) for outcome in outcomes]})
    else:
        _print(outcomes, faults)
    if faults or any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(1)


def _print(outcomes: list[Outcome], faults: list[str]) -> None:
    from rich.text import Text

    columns = ("component", "law", "passed", "failed", "skipped", "why")
    rows = table(*columns, no_wrap=columns[:5], right=columns[2:5])
    by_law: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_law.setdefault((outcome.component, outcome.law), []).append(outcome)
    for (component, law), tried in by_law.items():
        counts = Counter(outcome.status for outcome in tried)
        worst = next((o for o in tried if o.status == "failed"), tried[0])
        why = f"[{worst.configuration}] " if worst.message and worst.configuration else ""
        rows.add_row(
            Text(component),
            law,
            str(counts["passed"] or ""),
            Text(str(counts["failed"] or ""), style="red"),
            str(counts["skipped"] or ""),
            Text(why + worst.message),
        )
    print_table(rows)
    out = console()
    for fault in faults:
        out.print(Text.assemble(("fault", "red"), ": ", fault))
    counts = Counter(outcome.status for outcome in outcomes)
    parts = (f"{counts[status]} {status}" for status in ("passed", "failed", "skipped"))
    out.print("\n" + ", ".join(parts))
