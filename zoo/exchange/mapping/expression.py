"""Whole-number arithmetic in maps: ``3*n+2`` in names, ``$heads * $width`` in values."""

from __future__ import annotations

import ast
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
    """A sum, difference, product or whole quotient of numbers and names."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        refusal = f"'{self.text}' is no arithmetic of whole numbers and names, as 3*n+2"
        if len(text) > MAX_LENGTH:
            raise ZooError(f"an expression has at most {MAX_LENGTH} characters")
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ZooError(refusal) from None
        for node in ast.walk(self._tree):
            whole = isinstance(node, ast.Constant) and type(node.value) is int
            known = isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS
            named = isinstance(node, (ast.Name, ast.Load, *_OPERATORS))
            if not (whole or known or named):
                raise ZooError(refusal)
        self.names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def value(self, names: Mapping[str, int]) -> int:
        """The number, where every name has one."""
        for name in sorted(self.names - names.keys()):
            raise ZooError(f"'{name}' has no value here{suggest(name, names)}")
        try:
            return _evaluate(self._tree, names)
        except ZeroDivisionError:
            raise ZooError(f"'{self.text}' divides by zero") from None

    def solve(self, value: int) -> int | None:
        """The number that its only name must stand for, or None if there is none from 0 on."""
        (name,) = self.names
        start = self.value({name: 0})
        slope = self.value({name: 1}) - start
        found = (value - start) // slope if slope else 0
        return found if found >= 0 and self.value({name: found}) == value else None


def _evaluate(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    if isinstance(node, ast.Name):
        return names[node.id]
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return node.value
