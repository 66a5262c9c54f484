"""Captions: the equations, papers and parameters of the components that compute weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zoo_inspect.panels import FONT, Ruler, line_height
from zoo_inspect.view import Equation, View


@dataclass(frozen=True)
class Line:
    """A line of a caption and its height in inches."""

    text: str
    is_math: bool
    height: float


def distinct_equations(view: View) -> list[Equation]:
    """Return the equations of all layers, each once, in their order."""
    found: list[Equation] = []
    for layer in view.layers:
        found += [equation for equation in layer.equations if equation not in found]
    return found


def describe_equation(equation: Equation) -> str:
    """Return kind, name, parameters and paper of a component in one line."""
    values = ", ".join(f"{key} = {value}" for key, value in equation.parameters.items())
    head = f"{equation.kind} {equation.name}" + (f" ({values})" if values else "")
    return f"{head}: {equation.paper}" if equation.paper else head


def equation_parts(text: str) -> list[str]:
    """Return the equations of a docstring one by one: they are separated by \\quad and lines."""
    parts = re.split(r"\n\n|\\qquad|\\quad", text)
    return [" ".join(part.split()).rstrip(",") for part in parts if part.strip()]


def caption_lines(view: View, width: float, ruler: Ruler) -> list[Line]:
    """Return the caption of a picture of a width in inches."""
    lines: list[Line] = []
    for equation in distinct_equations(view):
        for text in wrap(describe_equation(equation), width, ruler):
            lines.append(Line(text, False, line_height()))
        lines += _equation_lines(equation_parts(equation.text), width, ruler)
    return lines


def _equation_lines(parts: Sequence[str], width: float, ruler: Ruler) -> Iterator[Line]:
    """Yield equations side by side where they fit; as text if matplotlib does not know them."""
    line: list[str] = []
    for part in parts:
        longer = _to_math([*line, part])
        if not _is_drawable(longer):
            yield from (Line(text, False, line_height()) for text in wrap(part, width, ruler))
        elif line and ruler.size(longer, math=True)[0] > width:
            yield _math_line(line, ruler)
            line = [part]
        else:
            line.append(part)
    if line:
        yield _math_line(line, ruler)


def _to_math(parts: Sequence[str]) -> str:
    return "$\\quad " + ", \\qquad ".join(parts) + "$"


def _math_line(parts: Sequence[str], ruler: Ruler) -> Line:
    text = _to_math(parts)
    return Line(text, True, ruler.size(text, math=True)[1] + 0.08)


def _is_drawable(text: str) -> bool:
    """Return whether matplotlib knows all commands of an equation."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return False
    return True


def wrap(text: str, width: float, ruler: Ruler, size: float = FONT) -> Iterator[str]:
    """Yield the lines of a text that are not wider than a width in inches, if words are not."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and ruler.width(longer, size) > width:
            yield line
            line = word
        else:
            line = longer
    yield line
