"""``zoo new-plugin``: create a plugin from a template."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zoo.cli.completion import complete_kind
from zoo.cli.output import JsonOption, print_json

if TYPE_CHECKING:
    from zoo.cli.index import Index

EXAMPLE = "zoo new-plugin cosine --kind scorer"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the plugin: lower-case words joined by hyphens."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            help="Kind of its component, for example scorer; or importer.",
            autocompletion=complete_kind,
        ),
    ],
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder in which to create the plugin's folder.")
    ] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Create a plugin with one component or importer, a test of the laws, and a README."""
    from zoo.scaffold import write_plugin

    created = write_plugin(name, kind, folder)
    _warn_of_conflicts(name, kind)
    commands = [f"pip install -e {shlex.quote(str(created))}", f"zoo test-plugin {name}"]
    if as_json:
        print_json({"folder": str(created), "next": commands})
        return
    print(f"wrote {created}")
    print(f"next: {' && '.join(commands)}")


def _warn_of_conflicts(name: str, kind: str) -> None:
    """Warn if an installed plugin has this name, or a component or importer with this name."""
    import warnings

    from zoo.cli.index import load_index
    from zoo.errors import ZooWarning

    for message in _conflicts(load_index(), name, kind):
        warnings.warn(f"{message}; choose another name", ZooWarning, stacklevel=2)


def _conflicts(index: Index, name: str, kind: str) -> Iterator[str]:
    for plugin in index.plugins:
        if plugin.name == name:
            yield (
                f"distribution {plugin.distribution} has a plugin named '{name}' too, so names of "
                f"the form '{name}:NAME' can be ambiguous"
            )
    if kind == "importer":
        for importer in index.importers:
            if importer.name == name and importer.plugin != name:
                yield f"plugin '{importer.plugin}' has an importer named '{name}' too"
        return
    for component in index.components(kind):
        if component.name == name and component.plugin != name:
            yield (
                f"{kind} '{name}' is also provided by plugin '{component.plugin}' (distribution "
                f"{component.distribution}), so specs must write '{name}:{name}' or "
                f"'{component.plugin}:{name}'"
            )
