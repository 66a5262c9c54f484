r"""Equations of docstrings as MathML, which browsers render without a library.

A node is a list of its tag and its children; the child of a leaf is its text. The tag of a bracket
that has the height of what it encloses is ``fence``. Commands that are not known are shown by their
names, so every equation has a readable form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Node = list[Any]

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)
_SEPARATOR = re.compile(r"\\q?quad(?![A-Za-z])|\\\\|\n\s*\n")


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


_SYMBOLS = _pairs(
    "alpha:α beta:β gamma:γ delta:δ epsilon:ε varepsilon:ε zeta:ζ eta:η theta:θ iota:ι kappa:κ "
    "lambda:λ mu:μ nu:ν xi:ξ pi:π rho:ρ sigma:σ tau:τ phi:φ varphi:φ chi:χ psi:ψ omega:ω "
    "Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ Pi:Π Sigma:Σ Phi:Φ Psi:Ψ Omega:Ω ell:ℓ nabla:∇ "
    "infty:∞ top:⊤ emptyset:∅ partial:∂"
)
_OPERATORS = _pairs(
    "cdot:· odot:⊙ circ:∘ times:× oplus:⊕ otimes:⊗ le:≤ leq:≤ ge:≥ geq:≥ ne:≠ neq:≠ approx:≈ "
    "sim:∼ propto:∝ in:∈ notin:∉ mid:∣ to:→ rightarrow:→ leftarrow:← gets:← mapsto:↦ cap:∩ cup:∪ "
    "subset:⊂ dots:… ldots:… cdots:⋯ lVert:‖ rVert:‖ Vert:‖ |:‖ lvert:| rvert:| langle:⟨ rangle:⟩ "
    "{:{ }:} lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ forall:∀ pm:± ast:∗ star:⋆ backslash:∖ ll:≪ gg:≫"
)
_ACCENTS = _pairs("hat:^ tilde:~ bar:¯ overline:¯ vec:→ dot:˙ overrightarrow:→ overleftarrow:←")
_LARGE = _pairs("sum:∑ prod:∏ int:∫ bigcup:⋃")
_LIMITS = ("max", "min", "arg", "argmax", "argmin", "lim", "sup")
_SPACES = {",": "0.17em", ";": "0.28em", ":": "0.22em", " ": "0.25em", "!": "0"}
_IGNORED = re.compile("[bB]igg?[lr]?|right|textstyle|displaystyle|limits")
_TEXT = ("text", "textrm", "textit", "mbox")
_LETTERS = re.compile("math[a-z]+|operatorname|boldsymbol")


def to_mathml(latex: str) -> list[Node]:
    r"""Return the parts of an equation, separated by ``\qquad``, ``\\`` or empty lines."""
    if r"\begin" in latex:
        return [["mtext", latex]]
    parts = [part.strip() for part in _SEPARATOR.split(latex)]
    return [["mrow", *_Parser(part).parse_row()] for part in parts if part]


def _is_name(node: Node) -> bool:
    """Return whether a node is a name such as log, with its subscripts."""
    base = node[1] if node[0] in ("msub", "munder") else node
    return bool(base[0] == "mi" and len(base[1]) > 1)


class _Parser:
    """A parser of one part of an equation."""

    def __init__(self, latex: str) -> None:
        self.tokens: Sequence[str] = _TOKEN.findall(latex)
        self.position = 0

    def parse_row(self, end: str | None = None) -> list[Node]:
        """Return the nodes up to a token or the end of the equation."""
        nodes: list[Node] = []
        while (token := self._peek()) is not None and token != end:
            if token in ("^", "_", "'"):
                base = nodes.pop() if nodes else ["mrow"]
                nodes.append(self._parse_scripts(base))
            elif (node := self._parse_atom()) is not None:
                after_name = nodes and _is_name(nodes[-1]) and token not in ("(", "[", "^")
                if after_name or (nodes and nodes[-1][0] in ("mi", "mn") and _is_name(node)):
                    nodes.append(["mspace", _SPACES[","]])
                nodes.append(node)
        self.position += 1
        return nodes

    def _peek(self) -> str | None:
        while self.position < len(self.tokens) and self.tokens[self.position].isspace():
            self.position += 1
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _parse_argument(self) -> Node:
        while self._peek() is not None:
            if (node := self._parse_atom()) is not None:
                return node
        return ["mrow"]

    def _parse_scripts(self, base: Node) -> Node:
        below: Node | None = None
        above: list[Node] = []
        while (token := self._peek()) in ("^", "_", "'"):
            self.position += 1
            if token == "_":
                below = self._parse_argument()
            else:
                above.append(["mo", "′"] if token == "'" else self._parse_argument())
        has_limits = base[0] == "mo" and base[1] in _LARGE.values()
        has_limits |= base[0] == "mi" and base[1] in _LIMITS
        names = ("munder", "mover", "munderover") if has_limits else ("msub", "msup", "msubsup")
        top: Node = above[0] if len(above) == 1 else ["mrow", *above]
        if below is None:
            return [names[1], base, top]
        return [names[2], base, below, top] if above else [names[0], base, below]

    def _parse_atom(self) -> Node | None:
        token = self.tokens[self.position]
        self.position += 1
        if token == "{":
            return ["mrow", *self.parse_row("}")]
        if token.startswith("\\"):
            return self._parse_command(token[1:])
        if token[0].isdigit():
            return ["mn", token]
        if token.isalpha():
            return ["mi", token]
        return None if token == "}" or token == "&" else ["mo", "−" if token == "-" else token]

    def _parse_command(self, name: str) -> Node | None:
        if name in _SYMBOLS:
            return ["mi", _SYMBOLS[name]]
        if name in _OPERATORS:
            return ["mo", _OPERATORS[name]]
        if name in _LARGE:
            return ["mo", _LARGE[name]]
        if name in _ACCENTS:
            return ["mover", self._parse_argument(), ["mo", _ACCENTS[name]]]
        if name in ("frac", "tfrac", "dfrac"):
            return ["mfrac", self._parse_argument(), self._parse_argument()]
        if name == "sqrt":
            return ["msqrt", self._parse_argument()]
        if name in _TEXT:
            return ["mtext", self._read_group().replace(" ", "\u00a0")]
        if name == "left":
            return ["mrow", self._parse_fence(), *self.parse_row("\\right"), self._parse_fence()]
        if _LETTERS.fullmatch(name):
            return self._parse_letters()
        if name in _SPACES:
            return ["mspace", _SPACES[name]]
        return None if _IGNORED.fullmatch(name) else ["mi", name]

    def _parse_fence(self) -> Node:
        """Return a bracket that has the height of what it encloses; empty for a dot."""
        node = self._parse_argument()
        return ["fence", "" if node[1:] == ["."] else node[1]] if node[1:] else node

    def _parse_letters(self) -> Node:
        """Return letters in another style: a name is one identifier, anything else is parsed."""
        start = self.position
        text = self._read_group()
        if re.fullmatch(r"[A-Za-z0-9 \-]+", text):
            return ["mi", text]
        self.position = start
        return self._parse_argument()

    def _read_group(self) -> str:
        """Return the text of the next argument."""
        if self._peek() != "{":
            self.position += 1
            return self.tokens[self.position - 1] if self.position <= len(self.tokens) else ""
        depth, start = 0, self.position + 1
        while self.position < len(self.tokens):
            token = self.tokens[self.position]
            depth += (token == "{") - (token == "}")
            self.position += 1
            if depth == 0:
                break
        return "".join(self.tokens[start : self.position - 1]).replace("\\", "")
