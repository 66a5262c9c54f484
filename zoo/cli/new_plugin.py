"""``zoo new-plugin``: create a plugin from a template."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "zoo new-plugin cosine --kind scorer"


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the plugin: lower-case words joined by hyphens."
        ),
    ],
    kind: Annotated[
        str, typer.Option(help="Kind of its component, for example scorer; or importer.")
    ],
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder in which to create the plugin's folder.")
    ] = Path(),
) -> None:
    """Create a plugin with one component or importer, a test of the laws, and a README."""
    from zoo.scaffold import write_plugin

    created = write_plugin(name, kind, folder)
    _warn_of_conflicts(name, kind)
    print(f"wrote {created}")
    print(f"next: pip install -e {shlex.quote(str(created))} && zoo test-plugin {name}")


def _warn_of_conflicts(name: str, kind: str) -> None:
    """Warn if an installed plugin has this name, or a component of the kind with this name."""
    import warnings

    from zoo.cli.index import load_index
    from zoo.errors import ZooWarning

    index = load_index()
    for plugin in index.plugins:
        if plugin.name == name:
            warnings.warn(
                f"distribution {plugin.distribution} has a plugin named '{name}' too; names of "
                f"the form '{name}:NAME' can be ambiguous, so choose another name",
                ZooWarning,
                stacklevel=2,
            )
    for importer in index.importers if kind == "importer" else ():
        if importer.name == name and importer.plugin != name:
            warnings.warn(
                f"plugin '{importer.plugin}' has an importer named '{name}' too; choose another "
                "name",
                ZooWarning,
                stacklevel=2,
            )
    for component in index.components(kind) if kind != "importer" else ():
        if component.name == name and component.plugin != name:
            warnings.warn(
                f"{kind} '{name}' is also provided by plugin '{component.plugin}' (distribution "
                f"{component.distribution}); specs must write '{name}:{name}' or "
                f"'{component.plugin}:{name}', so choose another name",
                ZooWarning,
                stacklevel=2,
            )
