"""Markdown text: escaping, tables, blocks of code and of maths."""

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"[*\[\]<>$|~]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that start markup inside a line; `_` not inside a word."""
_CODE_SPAN = re.compile(r"(``.+?``|`[^`]+`)", re.S)
_MATH_ROLE = re.compile(r":math:`([^`]+)`")


def prose(text: str) -> str:
    """Return text of a docstring as Markdown: markup other than code and maths is escaped."""
    pieces = _CODE_SPAN.split(_MATH_ROLE.sub(r"`$\1$`", text))
    return "".join(
        _code_span(piece) if index % 2 else _MARKUP.sub(r"\\\g<0>", piece)
        for index, piece in enumerate(pieces)
    )


def _code_span(span: str) -> str:
    return f"`{span.strip('`')}`"


def code(text: str) -> str:
    """Return text as a code span; empty text stays empty."""
    return f"`` {text} ``" if "`" in text else f"`{text}`" if text else ""


def code_block(language: str, text: str) -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.rstrip()}\n```"


def math_block(equation: str) -> str:
    """Return a block of maths, in the notation that GitHub and MyST read."""
    return code_block("math", equation)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def link(label: str, page: str, source: str) -> str:
    """Return a link to a page, as path from the top folder, in the page `source`."""
    return f"[{label}]({relative(page, source)})"


def relative(page: str, source: str) -> str:
    """Return the path of a page relative to the page `source`, both from the top folder."""
    return "../" * source.count("/") + page
