"""Scripts and styles without comments and spaces, as pages contain them."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)
"""Lines that are comments; there are none at the ends of lines."""
_LITERAL = re.compile(r'("(?:[^"\\]|\\.)*"|`[^`]*`)')
"""Strings, and templates without templates inside of them."""
_OPERATOR = re.compile(r"\s*([=<>!?:*/%&|,;(){}\[\]])\s*")
_SIGN = re.compile(r"(?<![+-]) ([+-]) (?![+-])")
"""Signs between two values; doubled ones would mean something else."""
_SHORTER = [
    (re.compile(r"\s+"), " "),
    (_SIGN, r"\1"),
    (_OPERATOR, r"\1"),
    (re.compile(r"(?<![\w$])\((\w+)\)=>"), r"\1=>"),  # functions of one argument
    (re.compile(r"\b0\.(?=\d)"), "."),
    (re.compile(r";}"), "}"),
]


def compact_script(text: str) -> str:
    """Return a script, all of whose statements end with a semicolon or a brace, and whose loops
    are not empty."""
    parts = _LITERAL.split(_shorten_names(_COMMENT.sub("", text)))
    parts[::2] = [_compact(part) for part in parts[::2]]
    return "".join(parts).strip()


def _shorten_names(text: str) -> str:
    """Return a script whose own functions and constants have short names.

    Constants have names in capitals; a function whose name is a key or a method too keeps it.
    """
    functions = re.findall(r"^\s*(?:async )?function (\w+)", text, re.MULTILINE)
    constants = re.findall(r"(?<![\w.$\"])([A-Z][A-Z_]{3,}) = ", text)
    for number, name in enumerate(dict.fromkeys([*functions, *constants])):
        key = rf"[{{,]\s*{name}\s*[:,}}]|^\s+{name}\(.*\{{$|\"{name}\""
        if name in constants or not re.search(key, text, re.MULTILINE):
            text = re.sub(
                rf"(?<![\w$])(?:(?<=\.\.\.)|(?<!\.)){name}(?![\w$])", f"${number:x}", text
            )
    return text


def _compact(text: str) -> str:
    """Return the part of a script between literals."""
    for pattern, shorter in _SHORTER:
        text = pattern.sub(shorter, text)
    return text


def compact_style(text: str) -> str:
    """Return a style without line breaks, and without the spaces of declarations and blocks."""
    text = re.sub(r"\s*([{};,])\s*", r"\1", re.sub(r"\s+", " ", text)).replace(";}", "}")
    return re.sub(r"([{;][a-z-]+): ", r"\1:", text).strip()
