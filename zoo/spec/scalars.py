"""Values of plain YAML scalars, by the core schema of YAML 1.2."""

from __future__ import annotations

import re
from typing import Any

MAX_DIGITS = 40

_INT = re.compile(r"[-+]?[0-9]+")
_BASED_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{
        sign + word: float(sign + "inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar; raise ValueError if an integer has too many digits."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    base = 10 if _INT.fullmatch(text) else 0 if _BASED_INT.fullmatch(text) else None
    if base is None:
        return float(text) if _FLOAT.fullmatch(text) else text
    if len(text) > MAX_DIGITS:
        raise ValueError(f"number has more than {MAX_DIGITS} digits")
    return int(text, base)
