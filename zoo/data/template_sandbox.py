"""The sandbox of chat templates. It runs in a process with limits of time and memory.

As in transformers, but with the filters and methods of strings that are listed here only.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

FILTERS = (
    *("abs", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e", "escape"),
    *("first", "float", "format", "groupby", "indent", "int", "items", "join", "last", "length"),
    *("list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round"),
    *("safe", "select", "selectattr", "slice", "sort", "string", "sum", "title", "trim"),
    *("truncate", "unique", "upper", "wordcount", "wordwrap"),
)
STRING_METHODS = (
    *("capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index"),
    *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace"),
    *("istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix"),
    *("removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip"),
    *("split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill"),
)
"""`format` and `format_map` are those of jinja2."""
GLOBALS = ("range", "dict", "namespace", "joiner", "cycler")


class Renderer:
    """Renders templates, and keeps the last one compiled."""

    def __init__(self) -> None:
        self._source: str | None = None
        self._template = Template("")

    def __call__(self, template: str, variables: dict[str, Any]) -> str:
        action = "is not valid"
        try:
            if template != self._source:
                self._template = _Sandbox().from_string(template)
                self._source = template
            action = "cannot format the messages"
            return str(self._template.render(variables))
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"{action}: {str(error) or type(error).__name__}") from None


class _Sandbox(ImmutableSandboxedEnvironment):
    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
        )
        self.filters = {name: self.filters[name] for name in FILTERS} | {"tojson": _to_json}
        self.globals = {name: self.globals[name] for name in GLOBALS}
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in STRING_METHODS
        return super().is_safe_attribute(obj, attr, value)


class _GenerationBlock(Extension):
    """``{% generation %}``, which marks the assistant's answers and does not change the text."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON without the escapes for HTML of jinja2's own filter."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
