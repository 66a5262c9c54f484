"""Scripts and styles without comments and spaces, as pages contain them."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)
"""Lines that are comments; there are none at the ends of lines."""
_LITERAL = re.compile(r'("(?:[^"\\]|\\.)*"|`[^`]*`)')
"""Strings, and templates without templates inside of them."""
_SIGN = re.compile(r"(?<=[\w)\]]) ([+-]) (?=[\w(\[])")
"""Signs between two operands; not those that would be doubled."""
_OPERATOR = re.compile(r"\s*([=<>!?:*/%&|,;(){}\[\]])\s*")


def compact_script(text: str) -> str:
    """Return a script, all of whose statements end with a semicolon or a brace."""
    parts = _LITERAL.split(_COMMENT.sub("", text))
    parts[::2] = [_compact_code(part) for part in parts[::2]]
    return "".join(parts).strip()


def _compact_code(text: str) -> str:
    return _OPERATOR.sub(r"\1", _SIGN.sub(r"\1", re.sub(r"\s+", " ", text)))


def compact_style(text: str) -> str:
    """Return a style without line breaks, and without the spaces of declarations and blocks."""
    text = re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"\s+", " ", text)).replace(";}", "}")
    return re.sub(r"([{;][a-z-]+): ", r"\1:", text).strip()
