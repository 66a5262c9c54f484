"""``zoo test-plugin``: run the laws on a component, or on all components of a plugin."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_device, complete_plugin
from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.terminal import console
from zoo.cli.verbosity import shows_progress

if TYPE_CHECKING:
    import torch

    from zoo.interfaces import Component
    from zoo.interfaces.importer import Importer
    from zoo.testing import Outcome

EXAMPLE = "zoo test-plugin additive --law gradients"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A plugin that 'zoo plugins' lists, or a component or importer: NAME or "
            "PLUGIN:NAME.",
            autocompletion=complete_plugin,
        ),
    ],
    laws: Annotated[
        list[str] | None,
        typer.Option("--law", metavar="LAW", help="Run only this law. Repeatable."),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="Where components compute, for example cuda. Models are always compared on all.",
            autocompletion=complete_device,
        ),
    ] = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Run the laws on a component or importer, or on all of a plugin; the exit code is 1 if one
    fails."""
    from rich.progress import track

    from zoo.spec.composition import resolve_device

    place = resolve_device(device)
    subjects, faults = _find_subjects(name)
    _check_laws(laws or [], subjects)
    outcomes: list[Outcome] = []
    silent = as_json or not shows_progress()
    stderr = console(stderr=True)
    for subject in track(subjects, "running laws", transient=True, console=stderr, disable=silent):
        outcomes += _run_laws(subject, place, laws or [])
    if as_json:
        print_json({"faults": faults, "outcomes": [vars(outcome) for outcome in outcomes]})
    else:
        _print(outcomes, faults)
    if faults or any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(1)


def _find_subjects(name: str) -> tuple[list[type[Component] | Importer], list[str]]:
    """Return the components and importers of a name, and the problems of its plugin."""
    from zoo.errors import RegistryError, suggest
    from zoo.registry.component_registry import default_registry

    registry = default_registry()
    found: list[type[Component] | Importer] = []
    for plugin in registry.plugins:
        named: list[tuple[str, type[Component] | Importer]]
        named = [(entry.name, entry.cls) for entry in plugin.entries]
        named += [(importer.name, importer) for importer in plugin.importers]
        if plugin.name == name:
            return [each for _, each in named], plugin.errors
        found += [each for own, each in named if name in (own, f"{plugin.name}:{own}")]
    if not found:
        known = [plugin.name for plugin in registry.plugins]
        known += [entry.name for entry in registry.components()]
        raise RegistryError(
            f"no plugin, component or importer named '{name}' is installed{suggest(name, known)}"
        )
    return found, []


def _check_laws(names: list[str], subjects: list[type[Component] | Importer]) -> None:
    """Raise ZooError if a name is not that of a law of the components."""
    from zoo.errors import ZooError, suggest
    from zoo.testing.laws import LAWS
    from zoo.testing.run import importer_laws

    of_kinds = [LAWS[each.kind] if isinstance(each, type) else importer_laws() for each in subjects]
    known = sorted({law.name for laws in of_kinds for law in laws})
    for name in names:
        if name not in known:
            raise ZooError(f"no law named '{name}'{suggest(name, known)}")


def _run_laws(
    subject: type[Component] | Importer, device: torch.device, only: list[str]
) -> list[Outcome]:
    """Run the laws of a component on a device; models and importers choose devices themselves."""
    import torch

    from zoo.interfaces import Model
    from zoo.testing import run_laws

    if device.type == "cpu" or not isinstance(subject, type) or issubclass(subject, Model):
        return list(run_laws(subject, only=only))
    with torch.device(device):
        return list(run_laws(subject, only=only))


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
