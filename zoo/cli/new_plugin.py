"""``zoo new-plugin``: a plugin of your own, complete and installable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "zoo new-plugin cosine --kind scorer"


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case words joined by hyphens.")
    ],
    kind: Annotated[str, typer.Option(help="What its component is, for example scorer.")],
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Where the plugin's folder is made.")
    ] = Path(),
) -> None:
    """Write a third-party plugin: package, component, test that runs the laws, README."""
    from zoo.scaffold import write_plugin

    made = write_plugin(name, kind, folder)
    print(f"wrote {made}")
    print(f"next: pip install -e {made} && zoo test-plugin {name}")
