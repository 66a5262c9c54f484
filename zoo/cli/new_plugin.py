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
    kind: Annotated[str, typer.Option(help="Kind of its component, for example scorer.")],
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder in which to create the plugin's folder.")
    ] = Path(),
) -> None:
    """Create a plugin with one component, a test that runs the laws, and a README."""
    from zoo.scaffold import write_plugin

    created = write_plugin(name, kind, folder)
    print(f"wrote {created}")
    print(f"next: pip install -e {shlex.quote(str(created))} && zoo test-plugin {name}")
