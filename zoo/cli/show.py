"""``zoo show``: the documentation of a component, or the text of a spec."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.output import console, print_rows

if TYPE_CHECKING:
    from zoo.cli.index import ComponentRecord

EXAMPLE = "zoo show additive"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A component (NAME or PLUGIN:NAME) or a spec of a plugin."
        ),
    ],
) -> None:
    """Show the documentation of a component, or the text of a plugin's spec.

    For a component: kind and version, the plugin and distribution that provide it, the paper,
    the docstring, and the parameters that a spec can set, with allowed values and defaults.
    """
    from zoo.cli.index import load_index
    from zoo.errors import RegistryError, suggest
    from zoo.registry.lookup import find_file

    index = load_index()
    plugin, _, bare = name.rpartition(":")
    components = index.components()
    found = [c for c in components if c.name == bare and plugin in ("", c.plugin)]
    for component in found:
        _print_component(component)
    if name in index.specs:
        path = find_file("spec", index.specs, name)
        console().print(path.read_text(encoding="utf-8"), markup=False)
    elif not found:
        plugins = {c.plugin for c in components}
        if plugin and plugin not in plugins:
            raise RegistryError(
                f"no plugin named '{plugin}' has components; expected NAME or PLUGIN:NAME"
                f"{suggest(plugin, plugins)}"
            )
        if os.path.exists(name):
            raise RegistryError(
                f"{name} is a path; expected the name of a component or spec (see 'zoo check' for "
                "the file of a spec, 'zoo info' for a model)"
            )
        known = [c.name for c in components] + list(index.specs)
        tail = suggest(bare, known, list_command="zoo list' and 'zoo list --specs")
        importers = {importer for plugin in index.plugins for importer in plugin.importers}
        if name in importers:
            tail += f"; '{name}' is an importer, used by 'zoo import FOLDER'"
        raise RegistryError(f"no component or spec named '{name}'{tail}")


def _print_component(component: ComponentRecord) -> None:
    out = console()
    out.print(f"[bold cyan]{component.name}[/]  {component.kind}, version {component.version}")
    source = f"{component.distribution} {component.distribution_version}"
    out.print(f"plugin {component.plugin}, distribution {source}", markup=False)
    out.print(f"{component.paper}\n" if component.paper else "", markup=False)
    out.print(_wrap_docstring(component.doc, out.width), markup=False, soft_wrap=True)
    if not component.parameters:
        return
    out.print()
    print_rows(
        ("parameter", "values", "default"),
        ((row.name, row.values, row.default) for row in component.parameters),
        no_wrap=("parameter",),
    )
    out.print()


def _wrap_docstring(text: str, width: int) -> str:
    """Wrap the paragraphs of a docstring to a width; indented lines are not joined."""
    paragraphs = []
    for paragraph in text.replace(".. math::", "Formula:").split("\n\n"):
        lines = paragraph.splitlines()
        if not any(line.startswith(" ") for line in lines):
            lines = [" ".join(lines)]
        paragraphs.append("\n".join(_wrap_line(line, width) for line in lines))
    return "\n\n".join(paragraphs)


def _wrap_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4) if line.startswith(" ") else ""
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
