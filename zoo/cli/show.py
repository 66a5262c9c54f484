"""``zoo show``: the documentation of a component or part, or the text of a spec."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_component
from zoo.cli.output import JsonOption, print_json, print_rows
from zoo.cli.terminal import console
from zoo.errors import one_line

if TYPE_CHECKING:
    from zoo.cli.index import ComponentRecord, PartRecord
    from zoo.cli.index.records import ParameterRecord

EXAMPLE = "zoo show additive"
_LISTS = ("Args:", "Attributes:", "Raises:", "Returns:", "Shapes:")
"""Headings of docstrings, whose entries are indented."""
_CONTINUED = " " * 5


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A component (NAME or PLUGIN:NAME), a part such as attention, a section of specs "
            "such as train or train.batch, 'spec', or the name of a spec.",
            autocompletion=complete_component,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show the documentation of a component, a part or a section, or the text of a spec.

    For a component: kind and version, the plugin and distribution that provide it, the paper,
    the docstring, and the parameters that a spec can set, with allowed values and defaults. For
    an acceleration: the class it serves and the methods it replaces.
    Parts are classes that a slot takes without a type, such as Attention.
    """
    from zoo.cli.index import load_index
    from zoo.errors import RegistryError, suggest
    from zoo.registry.lookup import find_file

    index = load_index()
    plugin, _, bare = name.rpartition(":")
    components = index.components()
    found = [c for c in components if c.name == bare and plugin in ("", c.plugin)]
    parts = [part for part in index.parts if name in (part.name, part.class_name)]
    spec = find_file("spec", index.specs, name) if name in index.specs else None
    if as_json and (found or parts or spec):
        _print_as_json(found, parts, spec)
        return
    for component in found:
        _print_component(component)
    for part in parts:
        _print_part(part)
    if spec is not None:
        print(spec.read_text(encoding="utf-8"), end="")
    elif not found and not parts:
        plugins = {c.plugin for c in components}
        if plugin and plugin not in plugins:
            raise RegistryError(
                f"no plugin named '{plugin}' has components; expected NAME or PLUGIN:NAME"
                f"{suggest(plugin, plugins)}"
            )
        if os.path.exists(name):
            raise RegistryError(
                f"{name} is a path; expected the name of a component, part or spec (see 'zoo "
                "check' for the file of a spec, 'zoo info' for a model)"
            )
        known = [c.name for c in components] + [p.name for p in index.parts] + list(index.specs)
        tail = suggest(bare, known, list_command="zoo list' and 'zoo list --specs")
        if name in {importer.name for importer in index.importers}:
            tail += f"; '{name}' is an importer, used by 'zoo import FOLDER'"
        elif name in index.maps:
            tail += f"; '{name}' is a map, used by 'zoo import --map {name}'"
        raise RegistryError(f"no component, part or spec named '{name}'{tail}")


def _print_as_json(
    components: Sequence[ComponentRecord], parts: Sequence[PartRecord], spec: Path | None
) -> None:
    from dataclasses import asdict

    text = None if spec is None else spec.read_text(encoding="utf-8")
    print_json(
        {
            "components": [asdict(component) for component in components],
            "parts": [asdict(part) for part in parts],
            "spec": None if spec is None else {"file": str(spec), "text": text},
        }
    )


def _print_component(component: ComponentRecord) -> None:
    from rich.text import Text

    out = console()
    title = f"  {component.kind}, version {component.version}"
    out.print(Text.assemble((one_line(component.name), "bold cyan"), title))
    if component.slots:
        out.print(one_line(f"for slots of {' or '.join(component.slots)}"), markup=False)
    if component.serves:
        module = component.serves.rpartition(".")[0]
        out.print(one_line(f"replaces {component.replaced()} of {module}"), markup=False)
    source = f"{component.distribution} {component.distribution_version}"
    out.print(one_line(f"plugin {component.plugin}, distribution {source}"), markup=False)
    out.print(f"{one_line(component.paper)}\n" if component.paper else "", markup=False)
    _print_documentation(component.doc, component.parameters)


def _print_part(part: PartRecord) -> None:
    from rich.text import Text

    out = console()
    title = "  section of a spec" if part.name != "spec" else "  YAML file"
    if part.used_by:
        title = one_line(f"  part {part.class_name}, set without a type")
    out.print(Text.assemble((one_line(part.name), "bold cyan"), title))
    used = f"used by {', '.join(part.used_by)}" if part.used_by else ""
    out.print(one_line(used) + ("\n" if used else ""), markup=False)
    _print_documentation(part.doc, part.parameters)


def _print_documentation(doc: str, parameters: Sequence[ParameterRecord]) -> None:
    out = console()
    out.print(_wrap_docstring(doc, out.width), markup=False, soft_wrap=True)
    if not parameters:
        return
    out.print()
    print_rows(
        ("parameter", "values", "default"),
        ((row.name, row.values, row.default) for row in parameters),
        no_wrap=("parameter",),
    )
    out.print()


def _wrap_docstring(text: str, width: int) -> str:
    """Wrap the paragraphs of a docstring to a width; indented lines are not joined."""
    paragraphs = []
    text = text.replace(".. math::", "Formula:").replace("``", "`")
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if any(line.startswith("- ") for line in lines):
            lines = _join_continued(lines, "  ")
        elif not any(line.startswith(" ") for line in lines):
            lines = [" ".join(lines)]
        elif lines[0] in _LISTS:
            lines = _join_continued(lines, _CONTINUED)
        paragraphs.append("\n".join(_wrap_line(line, width) for line in lines))
    return "\n\n".join(paragraphs)


def _join_continued(lines: Sequence[str], indent: str) -> list[str]:
    """Join the further lines of an entry, which have this indent, with its first one."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(indent) and joined:
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def _wrap_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4) if line.startswith(" ") else ""
    indent = "  " if line.startswith("- ") else indent
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
