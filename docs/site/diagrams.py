"""Diagrams of the concepts: the kinds and their slots, the floors of the project."""

import ast
import html
from collections.abc import Iterator
from pathlib import Path

from zoo.interfaces import KINDS
from zoo.interfaces.signature import parameters
from zoo.plugin import Attention
from zoo.registry.component_registry import default_registry
from zoo.spec.spec import Sections
from zoo.spec.training import Training

ROOT = Path(__file__).parents[2]
_STYLE = (
    "rect{fill:#e8f0fe;stroke:#5b7fbd}.b{fill:#fff;stroke:none}.g{fill:#f3f4f6;stroke:#9aa7b8}"
    "path{fill:none;stroke:#9aa7b8}text{font:14px sans-serif;fill:#1b1f24}.s{fill:#57606a;"
    "font-size:12px}"
)
_WIDTH, _HEIGHT, _STEP_X, _STEP_Y = 108, 30, 168, 46
# Column and row of each box; boxes that are no kind have another colour.
PLACES = {
    "spec": (0, 5),
    "model": (1, 1),
    "initialiser": (1, 3),
    "adapter": (1, 4),
    "preprocessor": (1, 5),
    "objective": (1, 6),
    "metric": (1, 7),
    "sampler": (1, 8),
    "filter": (1, 9),
    "train": (1, 11),
    "embedding": (2, 0),
    "encoder": (2, 1),
    "decoder": (2, 2),
    "dataset": (2, 10),
    "optimiser": (2, 11),
    "schedule": (2, 12),
    "backbone": (3, 0),
    "position": (3, 1),
    "attention": (3, 2),
    "scorer": (4, 1.5),
    "alignment": (4, 2.5),
    "part": (3, 4),
    "acceleration": (3, 5),
}
NOTES = {
    "part": "a subclass of a slot's own class",
    "acceleration": "attached to a class from outside",
}


def kinds_svg() -> str:
    """Return the diagram of the kinds and of the slots that they fill."""
    assert set(KINDS) <= set(PLACES)
    elements = [_arrow(start, end) for start, end in sorted(slots()) if _is_next(start, end)]
    for name, place in PLACES.items():
        x, y = _corner(*place)
        style = "" if name in KINDS else ' class="g"'
        elements.append(_box(x, y, _WIDTH, name, style))
        if name in NOTES:
            elements.append(_text(x + _WIDTH + 8, y + 20, NOTES[name], "s"))
    return _svg("Kinds of components", 4 * _STEP_X + _WIDTH + 110, 13 * _STEP_Y + 8, elements)


def slots() -> set[tuple[str, str]]:
    """Return the pairs of a kind and a kind that fills one of its slots."""
    classes = [(entry.kind, entry.cls) for entry in default_registry().components()]
    classes += [("spec", Sections), ("train", Training), ("attention", Attention)]
    pairs = {(name, filled) for name, cls in classes for filled in _filled(cls)}
    return {(start, end) for start, end in pairs if start != end}


def _filled(cls: type) -> Iterator[str]:
    for parameter in parameters(cls):
        target = parameter.slot.target if parameter.slot else None
        if target is not None:
            name = getattr(target, "kind", {Attention: "attention", Training: "train"}.get(target))
            if name:
                yield name


def floors_svg() -> str:
    """Return the diagram of the floors, with the levels of the core from top to bottom."""
    floors = [
        ("lab/", "results, studies and scripts; weights/ has trained models"),
        ("plugins/zoo_lab", "bench, reproduce, compare, plan"),
        ("plugins/zoo_fast", "accelerations: kernels, fused and captured paths"),
        ("plugins/zoo_*", "components: one file each, which cites its paper"),
    ]
    elements = []
    for row, (name, text) in enumerate(floors):
        elements.append(_box(20, 20 + 44 * row, 620, "", ""))
        elements += [_text(34, 40 + 44 * row, name), _text(190, 40 + 44 * row, text, "s")]
    top = 20 + 44 * len(floors)
    levels = list(reversed(core_levels()))
    height = 34 + 22 * len(levels)
    elements.append(f'<rect class="g" x="20" y="{top}" width="620" height="{height}" rx="6"/>')
    elements += [_text(34, top + 21, "zoo/"), _text(190, top + 21, "the core: reference code", "s")]
    for row, names in enumerate(levels):
        elements.append(_text(190, top + 45 + 22 * row, " · ".join(names), "s"))
    return _svg("Floors of the project", 660, top + height + 20, elements)


def core_levels() -> list[list[str]]:
    """Return the modules of each level of the core, the lowest first."""
    tree = ast.parse((ROOT / "tests" / "test_floors.py").read_text(encoding="utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LEVELS"
    )
    return [sorted(level) for level in ast.literal_eval(value)]


def _corner(column: float, row: float) -> tuple[float, float]:
    return 20 + _STEP_X * column, 16 + _STEP_Y * row


def _is_next(start: str, end: str) -> bool:
    """Return whether the columns are adjacent: what skips a column is also filled on the way."""
    return PLACES[end][0] - PLACES[start][0] == 1


def _arrow(start: str, end: str) -> str:
    x, y = _corner(*PLACES[start])
    to_x, to_y = _corner(*PLACES[end])
    x, y, to_y = x + _WIDTH, y + _HEIGHT / 2, to_y + _HEIGHT / 2
    middle = (x + to_x) / 2
    return f'<path d="M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"/>'


def _box(x: float, y: float, width: float, text: str, style: str) -> str:
    rect = f'<rect{style} x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="6"/>'
    return rect + _text(x + 10, y + 20, text)


def _text(x: float, y: float, text: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{kind}>{html.escape(text)}</text>' if text else ""


def _svg(title: str, width: float, height: float, elements: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"><title>{title}</title>'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" class="b"/>'
        f"{''.join(elements)}</svg>\n"
    )
