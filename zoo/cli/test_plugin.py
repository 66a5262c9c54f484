"""``zoo test-plugin``: run the laws on the components of a plugin."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.completion import complete_device, complete_plugin
from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.terminal import console
from zoo.cli.verbosity import shows_progress

if TYPE_CHECKING:
    import torch

    from zoo.interfaces.importer import Importer
    from zoo.plugin import Component
    from zoo.testing import Outcome

EXAMPLE = "zoo test-plugin luong"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A plugin that 'zoo plugins' lists.",
            autocompletion=complete_plugin,
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            help="Where components compute, for example cuda. Models are always compared on all.",
            autocompletion=complete_device,
        ),
    ] = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Run all laws on each component and importer of a plugin; the exit code is 1 if one fails."""
    from rich.progress import track

    from zoo.errors import RegistryError, suggest
    from zoo.registry.component_registry import default_registry
    from zoo.spec.composition import resolve_device

    place = resolve_device(device)
    found = [plugin for plugin in default_registry().plugins if plugin.name == name]
    if not found:
        known = [plugin.name for plugin in default_registry().plugins]
        raise RegistryError(f"no plugin named '{name}' is installed{suggest(name, known)}")
    faults = [fault for plugin in found for fault in plugin.errors]
    subjects: list[Any] = [entry.cls for plugin in found for entry in plugin.entries]
    subjects += [importer for plugin in found for importer in plugin.importers]
    outcomes: list[Outcome] = []
    silent = as_json or not shows_progress()
    stderr = console(stderr=True)
    for subject in track(subjects, "running laws", transient=True, console=stderr, disable=silent):
        outcomes += _run_laws(subject, place)
    if as_json:
        print_json({"faults": faults, "outcomes": [vars(outcome) for outcome in outcomes]})
    else:
        _print(outcomes, faults)
    if faults or any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(1)


def _run_laws(subject: type[Component] | Importer, device: torch.device) -> list[Outcome]:
    """Run the laws of a component on a device; models and importers choose devices themselves."""
    import torch

    from zoo.interfaces import Model
    from zoo.testing import run_laws

    if device.type == "cpu" or not isinstance(subject, type) or issubclass(subject, Model):
        return list(run_laws(subject))
    with torch.device(device):
        return list(run_laws(subject))


def _print(outcomes: list[Outcome], faults: list[str]) -> None:
    from rich.text import Text

    columns = ("component", "law", "passed", "failed", "skipped", "reason")
    by_law: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_law.setdefault((outcome.component, outcome.law), []).append(outcome)
    rows = []
    for (component, law), group in by_law.items():
        counts = Counter(outcome.status for outcome in group)
        worst = next((o for o in group if o.status == "failed"), group[0])
        where = f"[{worst.configuration}] " if worst.message and worst.configuration else ""
        passed, failed, skipped = (
            str(counts[status] or "") for status in ("passed", "failed", "skipped")
        )
        failures = Text(failed, style="red")
        rows.append((component, law, passed, failures, skipped, where + worst.message))
    print_rows(columns, rows, no_wrap=columns[:5], right=columns[2:5])
    out = console()
    for fault in faults:
        out.print(Text.assemble(("problem", "red"), ": ", fault))
    counts = Counter(outcome.status for outcome in outcomes)
    parts = (f"{counts[status]} {status}" for status in ("passed", "failed", "skipped"))
    out.print("\n" + ", ".join(parts))
