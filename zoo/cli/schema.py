"""``zoo schema``: write the JSON Schema of specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "zoo schema -o zoo.schema.json"


def command(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: standard output.")
    ] = None,
) -> None:
    """Write the JSON Schema of specs, for the installed components.

    Editors use it for completion and validation. The first line of the spec must be
    '# yaml-language-server: $schema=zoo.schema.json'.
    """
    from zoo.errors import ZooError
    from zoo.files import atomic_write, os_error_message
    from zoo.registry.component_registry import default_registry
    from zoo.spec.schema import spec_schema

    text = json.dumps(spec_schema(default_registry()), indent=2, ensure_ascii=False)
    if output is None:
        print(text)
        return
    try:
        with atomic_write(output) as temp_path:
            temp_path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ZooError(f"{output} cannot be written: {os_error_message(error)}") from None
    print(f"wrote {output}")
