"""``zoo show``: one component or spec, in full."""

from __future__ import annotations

import inspect
import json
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zoo.cli.output import console, print_table, table

if TYPE_CHECKING:
    from zoo.interfaces import Entry

EXAMPLE = "zoo show additive"


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A component (name or plugin:name) or a shipped spec."),
    ],
) -> None:
    """Show what a component computes and takes, or the text of a shipped spec."""
    from zoo.errors import RegistryError, suggest
    from zoo.registry.component_registry import default_registry

    registry = default_registry()
    plugin, _, bare = name.rpartition(":")
    entries = [e for e in registry.components() if e.name == bare and plugin in ("", e.plugin)]
    for entry in entries:
        _print_component(entry)
    if name in registry.specs:
        console().print(registry.spec(name).read_text(encoding="utf-8"), markup=False)
    elif not entries:
        known = [e.name for e in registry.components()] + list(registry.specs)
        tail = suggest(bare, known, list_command="zoo list [--specs]")
        raise RegistryError(f"no component or spec named '{name}'{tail}")


def _print_component(entry: Entry) -> None:
    from rich.text import Text

    from zoo.interfaces.signature import parameters

    out = console()
    out.print(f"[bold cyan]{entry.name}[/]  {entry.kind}, version {entry.cls.version}")
    out.print(f"plugin {entry.plugin}, from {entry.distribution} {entry.distribution_version}")
    out.print(f"{entry.cls.paper}\n" if entry.cls.paper else "", markup=False)
    out.print(
        _wrap_docstring(inspect.getdoc(entry.cls) or "", out.width), markup=False, soft_wrap=True
    )
    rows = parameters(entry.cls)
    if not rows:
        return
    listed = table("parameter", "takes", "default", no_wrap=("parameter",))
    for parameter in rows:
        default = "required" if parameter.required else _as_yaml(parameter.default)
        cells = (
            parameter.name,
            describe_parameter(parameter),
            "" if parameter.from_parent else default,
        )
        listed.add_row(*map(Text, cells))
    out.print()
    print_table(listed)
    out.print()


def _wrap_docstring(text: str, width: int) -> str:
    """A docstring for a terminal of this width: paragraphs filled anew, indented lines kept."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if not any(line.startswith((" ", "..")) for line in lines):
            lines = [" ".join(lines)]
        paragraphs.append("\n".join(_wrap_line(line, width) for line in lines))
    return "\n\n".join(paragraphs)


def _wrap_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4) if line.startswith(" ") else ""
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _as_yaml(value: Any) -> str:
    """A default as a spec would say it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def describe_parameter(parameter: Any) -> str:
    """What a parameter takes, in a few words."""
    if parameter.from_parent:
        return "given by the parent, not by a spec"
    if parameter.slot:
        kind = getattr(parameter.slot.target, "kind", parameter.slot.target.__name__.lower())
        return f"parts of kind {kind}" if parameter.slot.many else f"a part of kind {kind}"
    return _describe_schema(parameter.json_schema())


def _describe_schema(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_describe_schema(option) for option in schema["anyOf"])
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
    name = str(schema.get("type", "anything"))
    return " ".join([name, " and ".join(bounds)]).strip()
