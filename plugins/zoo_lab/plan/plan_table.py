"""The table of ``zoo plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.cli.output import format_bytes, print_rows
from zoo.cli.terminal import console

if TYPE_CHECKING:
    from zoo_lab.plan.memory_plan import MemoryPlan


def print_plan(plan: MemoryPlan) -> None:
    """Print the memory of each device and the communication of a plan."""
    from rich.text import Text

    devices = "1 device" if plan.devices == 1 else f"each of {plan.devices:,} devices"
    _print_line(
        f"{plan.name}, {plan.plan}: {devices}, batch {plan.batch} ({plan.settings['batch']})"
    )
    others = (f"{key} {value}" for key, value in plan.settings.items() if key != "batch")
    _print_line(", ".join(others))
    _print_line("")
    parts = dict.fromkeys((*plan.sizes, *plan.at_peak))
    rows: list[tuple[str | Text, ...]] = [
        (part, _format(plan.sizes.get(part)), _format(plan.at_peak.get(part))) for part in parts
    ]
    rows.append((Text("total", style="bold"), "-", Text(format_bytes(plan.total), style="bold")))
    print_rows(("memory", "size", "at the peak"), rows, right=("size", "at the peak"))
    _print_line("")
    for operation, sent in plan.communication.items():
        _print_line(f"{operation}: {format_bytes(sent)} sent per device and update")
    if not plan.communication:
        _print_line("no communication")


def _print_line(text: str) -> None:
    console().print(text, highlight=False, markup=False, soft_wrap=True)


def _format(size: int | None) -> str:
    """Return a number of bytes; a part that exists only at the peak has no size of its own."""
    return "-" if size is None else format_bytes(size)
