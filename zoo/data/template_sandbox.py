"""The sandbox of chat templates: jinja2 without unbounded loops, strings and numbers.

Every loop, call and string operation spends from the budget of a rendering. Filters and methods of
strings that are not listed are rejected by name.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MAX_WORK = 1_000_000
"""What one rendering may spend, about a second: 1 for 16 characters or items of a value."""
CHARACTERS = 16
ITERATION, CALL = 2, 20
MAX_INTEGER = 2**63

FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float"),
    *("int", "items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject"),
    *("rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "sort"),
    *("string", "sum", "title", "trim", "unique", "upper"),
)
_TEXT_FILTERS = ("join", "string", "tojson")
_CONSTANT_TIME = ("count", "d", "default", "first", "last", "length")
STRING_METHODS = (
    *("capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdigit"),
    *("islower", "isnumeric", "isspace", "isupper", "join", "lower", "lstrip", "partition"),
    *("removeprefix", "removesuffix", "replace", "rfind", "rindex", "rpartition", "rsplit"),
    *("rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper"),
)


class BoundedTemplate:
    """A compiled template."""

    def __init__(self, source: str) -> None:
        self._environment = _Sandbox()
        self._template = self._environment.from_string(source)

    def render(self, variables: Mapping[str, Any]) -> str:
        self._environment.spent.work = 0
        return self._template.render(dict(variables))


class _Spent(threading.local):
    """The work of the template that a thread renders."""

    work = 0


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        self.spent = _Spent()
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationBlock, loopcontrols],
            finalize=self.spend_on_text,
        )
        own: dict[str, Callable[..., Any]] = {"tojson": _to_json, "indent": _indent}
        allowed = {name: self.filters[name] for name in FILTERS}
        self.filters = {name: self._bounded(name, f) for name, f in (allowed | own).items()}
        self.filters |= {"bounded_loop": self._iterate, "bounded_text": self.spend_on_text}
        names = ("range", "dict", "namespace", "joiner", "cycler")
        self.globals = {name: self.globals[name] for name in names}
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}

    def spend(self, amount: int) -> None:
        self.spent.work += amount
        if self.spent.work > MAX_WORK:
            raise SecurityError("it takes too many steps or creates too long texts")

    def spend_on(self, value: Any) -> Any:
        """Spend for the characters or items of a value, and return it."""
        if isinstance(value, (str, list, tuple, dict, range)):
            self.spend(1 + len(value) // CHARACTERS)
        return self._iterate(value) if isinstance(value, Generator) else value

    def spend_on_text(self, value: Any) -> Any:
        """Spend for all that a value contains, which its text would have, and return it."""
        rest = [value]
        while rest:
            each = rest.pop()
            self.spend_on(each)
            if isinstance(each, (list, tuple, dict)):
                self.spend(ITERATION * len(each))
                rest += each.values() if isinstance(each, dict) else each
        return self.spend_on(value)

    def _iterate(self, items: Iterable[Any]) -> _Iteration:
        return _Iteration(items, self.spend)

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter whose arguments and result spend; markers of jinja2 are kept."""

        def bounded(*args: Any, **options: Any) -> Any:
            if name == "replace":
                self._check_replace(*[a for a in args if isinstance(a, str)][:3])
            if name in _TEXT_FILTERS:
                self.spend_on_text([a for a in args if isinstance(a, (list, tuple, dict))])
            if name not in _CONSTANT_TIME:
                self.spend(sum(len(a) for a in args if isinstance(a, (list, tuple, dict, range))))
            self.spend(1)
            return self.spend_on(function(*args, **options))

        for mark in ("jinja_pass_arg", "jinja_async_variant"):
            if hasattr(function, mark):
                setattr(bounded, mark, getattr(function, mark))
        return bounded

    def _check_replace(self, text: str = "", old: str = "", new: str = "") -> None:
        self.spend((len(text) + (text.count(old) + 1) * len(new)) // CHARACTERS)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = Parser(self, source, name, filename).parse()
        _AddBounds().visit(tree)
        return tree

    def wrap_str_format(self, value: Any) -> None:
        """Leave `format` to `is_safe_attribute`, which rejects it: widths are not bounded."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in STRING_METHODS
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Any, obj: Any, *args: Any, **options: Any) -> Any:
        self.spend(CALL)
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            if obj.__name__ == "replace":
                self._check_replace(owner, *args[:2])
            if obj.__name__ == "join" and args:
                args = (list(args[0]), *args[1:])
                self.spend(len(args[0]) * (len(owner) + CHARACTERS) // CHARACTERS)
        return self.spend_on(super().call(context, obj, *args, **options))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str) and re.search(r"%[^a-z%]*[\d*]", left):
            raise SecurityError("a width in a format of '%' is not supported")
        if operator == "*":
            for text, count in ((left, right), (right, left)):
                if isinstance(text, str) and isinstance(count, int):
                    self.spend(max(0, len(text) * count))
                elif isinstance(text, (list, tuple)):
                    raise SecurityError("repeating a list is not supported")
        if operator == "**" and (abs(left) >= 2**16 or abs(right) >= 64):
            raise SecurityError("a power of large numbers is not supported")
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int) and abs(result) >= MAX_INTEGER:
            raise SecurityError("an integer is too large")
        return self.spend_on(result)


class _Iteration:
    """The items of a loop, each of which spends."""

    def __init__(self, items: Iterable[Any], spend: Callable[[int], None]) -> None:
        self.items, self.spend = items, spend

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.spend(ITERATION)
            yield item

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]


class _AddBounds(NodeTransformer):
    """Passes what a template loops over, concatenates and compares through filters that spend."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _filter(cast(nodes.Expr, node.iter), "bounded_loop")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        node.nodes = [_bounded_text(each) for each in node.nodes]
        return _bounded_text(node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _bounded_text(node.expr)
        for operand in node.ops:
            operand.expr = _bounded_text(operand.expr)
        return node


def _bounded_text(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filter(node, "bounded_text")


def _filter(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


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
    if indent is not None and not 0 <= indent <= 16:
        raise TemplateRuntimeError(f"tojson: indent is {indent}; at most 16 is allowed")
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    from jinja2.filters import do_indent

    if not isinstance(width, int) or not 0 <= width <= 100:
        raise TemplateRuntimeError(f"indent: width is {width}; at most 100 is allowed")
    return do_indent(text, width, first, blank)


def _raise_exception(message: str) -> None:
    raise TemplateRuntimeError(message)


def _strftime_now(form: str) -> str:
    if len(form) > 100 or re.search(r"%\d", form):
        raise TemplateRuntimeError("strftime_now: the format is too long")
    return datetime.now().strftime(form)
