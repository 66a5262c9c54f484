"""``zoo schema``: JSON Schema of specs, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "zoo schema -o zoo.schema.json"


def command(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; standard output if not set.")
    ] = None,
) -> None:
    """Write the JSON Schema of specs made of the installed components.

    Editors complete and underline with it: put
    '# yaml-language-server: $schema=zoo.schema.json' on a spec's first line.
    """
    from zoo.errors import ZooError
    from zoo.registry.component_registry import default_registry
    from zoo.spec.schema import spec_schema

    text = json.dumps(spec_schema(default_registry()), indent=2, ensure_ascii=False)
    if output is None:
        print(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{output} could not be written: {error.strerror}") from None
    print(f"wrote {output}")
