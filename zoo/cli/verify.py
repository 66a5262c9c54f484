"""`zoo verify`: check a saved model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from zoo.cli.completion import complete_device
from zoo.cli.output import JsonOption, ModelArgument, print_json
from zoo.cli.progress import byte_progress
from zoo.cli.run_options import BaseOption
from zoo.errors import one_line

EXAMPLE = "zoo verify model.safetensors"
_STATUS_LABELS = {"ok": "ok", "failed": "FAILED", "absent": "absent", "skipped": "skipped"}
_INDENT = " " * 17
"""Further lines of a check are below its first one."""


def command(
    model: ModelArgument,
    device: Annotated[
        str, typer.Option(help="Device that runs the probe.", autocompletion=complete_device)
    ] = "cpu",
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the header, the hashes, the spec and the probe of a model."""
    from zoo.artifact import verify
    from zoo.errors import ArtifactError
    from zoo.hub.models import base_source, find

    path = find(model)
    with byte_progress(_total_bytes(path), "hashing") as progress:
        found = verify(path, device=device, progress=progress, base=base_source(base))
    if as_json:
        print_json(found.as_json())
        raise typer.Exit(0 if found.ok else 1)
    for check in found.checks:
        first, *more = check.detail.splitlines() or [""]
        print(f"{_STATUS_LABELS[check.status]:<8} {check.name:<7} {one_line(first)}")
        for line in more:
            print(f"{_INDENT}{one_line(line)}")
    if not found.ok:
        failed = ", ".join(check.name for check in found.checks if check.failed)
        raise ArtifactError(f"{path}: verification failed: {failed}")


def _total_bytes(path: Path) -> int:
    """Return the approximate number of bytes to hash."""
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in files)
    return 0
