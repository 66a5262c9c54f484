"""``zoo show``: one component or spec, in full."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.output import console

if TYPE_CHECKING:
    from zoo.interfaces import Entry

EXAMPLE = "zoo show additive"


def command(
    name: Annotated[
        str, typer.Argument(help="A component (name or plugin:name) or a shipped spec.")
    ],
) -> None:
    """Show what a component computes and takes, or the text of a shipped spec."""
    from zoo.errors import RegistryError, suggest
    from zoo.registry import default_registry

    registry = default_registry()
    plugin, _, bare = name.rpartition(":")
    entries = [e for e in registry.components() if e.name == bare and plugin in ("", e.plugin)]
    for entry in entries:
        _component(entry)
    if name in registry.specs:
        console().print(registry.spec(name).read_text(encoding="utf-8"), markup=False)
    elif not entries:
        known = [e.name for e in registry.components()] + list(registry.specs)
        raise RegistryError(f"no component or spec named '{name}'{suggest(bare, known)}")


def _component(entry: Entry) -> None:
    from rich.table import Table

    from zoo.signature import parameters

    out = console()
    out.print(f"[bold cyan]{entry.name}[/]  {entry.kind}, version {entry.cls.version}")
    out.print(f"plugin {entry.plugin}, from {entry.distribution} {entry.distribution_version}")
    out.print(f"{entry.cls.paper}\n" if entry.cls.paper else "", markup=False)
    out.print(inspect.getdoc(entry.cls) or "", markup=False)
    rows = parameters(entry.cls)
    if not rows:
        return
    table = Table(box=None, header_style="bold")
    for column in ("parameter", "takes", "default"):
        table.add_column(column)
    for parameter in rows:
        default = "required" if parameter.required else repr(parameter.default)
        table.add_row(parameter.name, takes(parameter), "" if parameter.given else default)
    out.print()
    out.print(table)
    out.print()


def takes(parameter: Any) -> str:
    """What a parameter takes, in a few words."""
    if parameter.given:
        return "given by the parent, not by a spec"
    if parameter.slot:
        kind = getattr(parameter.slot.target, "kind", parameter.slot.target.__name__.lower())
        return f"parts of kind {kind}" if parameter.slot.many else f"a part of kind {kind}"
    return _in_words(parameter.json_schema())


def _in_words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_in_words(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    limits = {
        "minimum": ">=",
        "exclusiveMinimum": ">",
        "maximum": "<=",
        "exclusiveMaximum": "<",
    }
    bounds = [f"{sign} {schema[key]}" for key, sign in limits.items() if key in schema]
    name = {"null": "nothing"}.get(str(schema.get("type")), str(schema.get("type", "anything")))
    return " ".join([name, " and ".join(bounds)]).strip()
