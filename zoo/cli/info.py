"""``zoo info``: what a model file says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.cli.output import Json, ModelArgument, console, human, print_json

if TYPE_CHECKING:
    from zoo.artifact import Header

EXAMPLE = "zoo info model.safetensors"


def command(model: ModelArgument, as_json: Json = False) -> None:
    """Show a model's spec, lock, provenance and tensors, without loading weights."""
    from zoo.artifact import read_header
    from zoo.hub.models import find

    header = read_header(find(model))
    if as_json:
        print_json(header.as_json())
    else:
        _print(header)


def _print(header: Header) -> None:
    import yaml
    from rich.table import Table

    out = console()
    numbers = sum(_size(shape) for _, shape in header.tensors.values())
    size = human(header.path.stat().st_size)
    out.print(f"[bold]{header.path}[/]: {len(header.tensors)} tensors, {numbers:,} numbers, {size}")
    made = ", ".join(f"{key} {value}" for key, value in header.provenance.items())
    out.print(f"made with: {made}\n", markup=False)
    out.print(yaml.safe_dump(header.spec, sort_keys=False, allow_unicode=True), markup=False)
    table = Table(box=None, header_style="bold")
    for column in ("kind", "component", "version", "plugin", "distribution"):
        table.add_column(column)
    for row in header.lock:
        distribution = f"{row.get('distribution')} {row.get('distribution_version')}"
        cells = (row.get("kind"), row.get("name"), row.get("version"), row.get("plugin"))
        table.add_row(*(str(cell) for cell in cells), distribution)
    out.print(table)


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for dimension in shape:
        total *= dimension
    return total
