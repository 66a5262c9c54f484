"""Integer arithmetic in maps: ``3*n+2`` in names, ``$heads * $width`` in values."""

from __future__ import annotations

import ast
import keyword
import operator
from collections.abc import Callable, Mapping

from zoo.errors import ZooError, suggest

MAX_LENGTH = 200

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class Expression:
    """An expression of integers and names with ``+``, ``-``, ``*`` and ``//``."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        invalid = f"'{self.text}' is not an integer expression such as 3*n+2 (operators: + - * //)"
        if len(text) > MAX_LENGTH:
            raise ZooError(
                f"an expression has {len(text)} characters; at most {MAX_LENGTH} are allowed"
            )
        if self.text.isidentifier() and not keyword.iskeyword(self.text):
            self._tree: ast.expr = ast.Name(self.text, ast.Load())  # without the parser, quickly
            self.names = {self.text}
            return
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ZooError(invalid) from None
        for node in ast.walk(self._tree):
            is_integer = isinstance(node, ast.Constant) and type(node.value) is int
            is_operation = isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS
            is_name = isinstance(node, (ast.Name, ast.Load, *_OPERATORS))
            if not (is_integer or is_operation or is_name):
                raise ZooError(invalid)
        self.names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def value(self, names: Mapping[str, int]) -> int:
        """Return the value of the expression, given the value of each name."""
        for name in sorted(self.names - names.keys()):
            raise ZooError(f"'{name}' has no value{suggest(name, names)}")
        try:
            return _evaluate(self._tree, names)
        except ZeroDivisionError:
            raise ZooError(f"'{self.text}' divides by zero") from None

    def solve(self, value: int) -> int | None:
        """Return the non-negative integer for which the expression, with one name, has this value.

        Returns None if there is none.
        """
        (name,) = self.names
        offset = self.value({name: 0})
        slope = self.value({name: 1}) - offset
        solution = (value - offset) // slope if slope else 0
        return solution if solution >= 0 and self.value({name: solution}) == value else None


def _evaluate(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    if isinstance(node, ast.Name):
        return names[node.id]
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return node.value
