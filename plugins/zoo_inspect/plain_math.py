"""Equations of docstrings as text for the terminal, in one line each: v^⊤ is vᵀ, fractions have a
slash."""

from __future__ import annotations

from zoo_inspect.mathml import Node, to_mathml

_SPACED = "=≤≥≠≈∼∝∈∉∣→←↦+−·⊙∘×⊕⊗"
_ACCENTS = dict(zip("^~¯→←˙", "\u0302\u0303\u0304\u20d7\u20d6\u0307", strict=True))
_POWERS = {"⊤": "ᵀ", "2": "²", "′": "′"}


def to_lines(latex: str) -> list[str]:
    """Return the parts of an equation as text."""
    return [" ".join(_to_text(node).split()) for node in to_mathml(latex)]


def _to_text(node: Node) -> str:
    tag, *children = node
    if tag == "mspace":
        return " "
    if tag == "mo":
        (text,) = children
        return f" {text} " if text in _SPACED else f"{text} " if text == "," else str(text)
    if tag in ("mi", "mn", "mtext", "fence"):
        return str(children[0]) if children else ""
    texts = [_to_text(child).strip() if tag != "mrow" else _to_text(child) for child in children]
    if tag == "mrow":
        return "".join(texts)
    if tag == "mfrac":
        return " / ".join(_enclose(text) for text in texts)
    if tag == "msqrt":
        return f"√{_enclose(texts[0])}"
    base, *scripts = texts
    if tag == "mover" and scripts[0] in _ACCENTS and len(base) == 1:
        return base + _ACCENTS[scripts[0]]
    below = [scripts.pop(0)] if tag in ("msub", "munder", "msubsup", "munderover") else []
    lower = "".join(f"_{_enclose(text, '{}')}" for text in below)
    upper = "".join(_POWERS.get(text) or f"^{_enclose(text, '{}')}" for text in scripts)
    is_large = tag in ("munder", "munderover", "mover")
    return base + lower + upper + (" " if is_large else "")


def _enclose(text: str, brackets: str = "()") -> str:
    """Return a text in brackets, unless it is one name."""
    return (
        text if text.lstrip("√").isalnum() or len(text) <= 1 else brackets[0] + text + brackets[1]
    )
