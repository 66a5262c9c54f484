"""Equations as MathML: structure, names of functions, and every equation of a component."""

import pytest

from zoo.registry.component_registry import default_registry
from zoo_inspect.equations import equation_text
from zoo_inspect.mathml import to_mathml

A, B, X = ["mi", "a"], ["mi", "b"], ["mi", "x"]
THIN = ["mspace", "0.17em"]


@pytest.mark.parametrize(
    ("latex", "nodes"),
    [
        (r"\frac{a}{b}", [["mfrac", ["mrow", A], ["mrow", B]]]),
        (r"\frac ab", [["mfrac", A, B]]),
        (r"x_a^b", [["msubsup", X, A, B]]),
        (r"x'_a", [["msubsup", X, A, ["mo", "′"]]]),
        (r"v^\top x", [["msup", ["mi", "v"], ["mi", "⊤"]], X]),
        (r"\sum_a x", [["munder", ["mo", "∑"], A], X]),
        (r"\log x", [["mi", "log"], THIN, X]),
        (r"\tanh(x)", [["mi", "tanh"], ["mo", "("], X, ["mo", ")"]]),
        (r"\mathrm{score}(x)", [["mi", "score"], ["mo", "("], X, ["mo", ")"]]),
        (r"\text{or } x", [["mtext", "or\u00a0"], X]),
        (r"\left(x\right)", [["mrow", ["fence", "("], X, ["fence", ")"]]]),
        (r"\hat x - 1.5", [["mover", X, ["mo", "^"]], ["mo", "−"], ["mn", "1.5"]]),
        (r"\unknown", [["mi", "unknown"]]),
        (r"\{x\}", [["mo", "{"], X, ["mo", "}"]]),
    ],
)
def test_structure(latex, nodes):
    assert to_mathml(latex) == [["mrow", *nodes]]


def test_parts_are_separate():
    assert to_mathml("a, \\qquad b \\\\ x\n\na") == [
        ["mrow", A, ["mo", ","]],
        ["mrow", B],
        ["mrow", X],
        ["mrow", A],
    ]


@pytest.mark.parametrize("latex", ["", "{", "}", "x^", r"\frac{a", r"\left(", r"\text", "^", "\\"])
def test_incomplete_equations_have_a_form(latex):
    assert isinstance(to_mathml(latex), list)


# The tags of MathML with their number of children; None: any number.
CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3} | {
    "munderover": 3,
    "msqrt": 1,
    "mrow": None,
}


def check(node):
    tag, *children = node
    if tag in CHILDREN:
        assert CHILDREN[tag] in (None, len(children)), node
        for child in children:
            check(child)
    else:
        assert tag in ("mi", "mn", "mo", "mtext", "mspace", "fence")
        (text,) = children
        assert isinstance(text, str)
        assert "\\" not in text or "\\begin" in text


def test_every_equation_of_a_component_is_valid():
    texts = [equation_text(entry.cls) for entry in default_registry().entries]
    equations = [text for text in texts if text]
    assert len(equations) > 100
    for text in equations:
        for tree in to_mathml(text):
            check(tree)
