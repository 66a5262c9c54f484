"""Equations as text for the terminal."""

import pytest

from zoo.registry.component_registry import default_registry
from zoo_inspect.equations import equation_text
from zoo_inspect.plain_math import to_lines


@pytest.mark.parametrize(
    ("latex", "lines"),
    [
        (r"a(q, k) = \frac{q^\top k}{\sqrt{d}}", ["a(q, k) = qᵀk / √d"]),
        (r"\alpha_{ts} = \sum_{s'} \exp e_{ts'}, \quad x^2", ["α_ts = ∑_{s′} exp e_{ts′},", "x²"]),
        (r"\hat x_t \leftarrow W h_{t-1} + b", ["x̂_t ← Wh_{t − 1} + b"]),
    ],
)
def test_known_equations(latex, lines):
    assert to_lines(latex) == lines


def test_no_component_has_commands_left():
    texts = {equation_text(entry.cls) for entry in default_registry().components()} - {""}
    left = {t for t in texts if r"\begin" not in t and any("\\" in x for x in to_lines(t))}
    assert left == set()
