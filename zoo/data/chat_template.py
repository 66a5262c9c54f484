"""Chat templates: from messages to one text, by a Jinja template with bounded work.

Templates come with models of others, so they run in the sandbox of Jinja, and what it does not
limit is limited here: the size of the template and of every text, iterations of loops, and calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from zoo.errors import ZooError, truncate

MAX_TEMPLATE = 2**16
MAX_TEXT = 2**22
"""Characters of a template, and of a text that it makes."""
MAX_STEPS = 20_000
"""Iterations of loops, and calls, of one rendering."""
_JOIN, _LOOP = "bounded_join", "bounded_loop"
_METHODS = {
    str: {
        "capitalize", "count", "endswith", "find", "isdigit", "join", "lower", "lstrip",
        "removeprefix", "removesuffix", "rsplit", "rstrip", "split", "splitlines", "startswith",
        "strip", "title", "upper",
    },
    dict: {"get", "items", "keys", "values"},
    list: {"count", "index"},
}  # fmt: skip
"""Methods that templates may call; others, such as ``center``, can make long texts."""
_FILTERS = {
    "bool", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items",
    "last", "length", "list", "lower", "map", "reject", "rejectattr", "reverse",
    "select", "selectattr", "sort", "title", "trim", "unique", "upper",
}  # fmt: skip

Message = Mapping[str, Any]


class ChatTemplate:
    """A template as `apply_chat_template` of transformers takes it.

    It has ``messages``, ``add_generation_prompt``, ``bos_token`` and ``eos_token``. The current
    date is not available, so that a text is the same every day.

    Args:
        text: the template.

    Raises:
        ZooError: if it is not a valid template.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_TEMPLATE:
            raise ZooError(
                f"the chat template has {len(text):,} characters, more than {MAX_TEMPLATE:,}"
            )
        with _Report("the chat template is not valid"):
            self._template  # noqa: B018 -- compiles it

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = False,
        bos_token: str = "",
        eos_token: str = "",
    ) -> str:
        """Return the text of messages.

        Args:
            messages: mappings with ``role`` and ``content``.
            add_generation_prompt: whether the text ends where an answer begins.

        Raises:
            ZooError: if the template rejects the messages, or makes a text that is too long.
        """
        values = {
            "messages": [dict(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            "bos_token": bos_token,
            "eos_token": eos_token,
        }
        environment = self._template.environment
        assert isinstance(environment, _Environment)
        environment.steps = 0
        with _Report("the chat template cannot be applied"):
            return environment.join(self._template.generate(values))

    def __getstate__(self) -> dict[str, str]:
        return {"text": self.text}

    @cached_property
    def _template(self) -> Any:
        environment = _Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
        )
        tree = _Bounds().visit(environment.parse(self.text))
        return environment.from_string(tree)


class _Report:
    """Raises ZooError for the errors of a template."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        known = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
        if isinstance(error, (*known, AttributeError)):
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            line = getattr(error, "lineno", None)
            place = f" (line {line})" if line else ""
            raise ZooError(f"{self.what}: {truncate(reason, 200)}{place}") from None


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with limits of sizes and steps."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.steps = 0
        self.filters = {name: self.filters[name] for name in _FILTERS if name in self.filters}
        self.filters |= {"tojson": self._to_json, "replace": self._replace, "string": self._to_text}
        self.filters |= {"join": self._join_with, _JOIN: self.join, _LOOP: self._loop}
        self.concat = self.join  # type: ignore[method-assign]
        self.finalize = self._finalize
        self.globals = {
            "namespace": self.globals["namespace"],
            "dict": self.globals["dict"],
            "range": self._range,
            "raise_exception": _raise,
        }

    def count(self, steps: int = 1) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise SecurityError(f"it takes more than {MAX_STEPS:,} steps")

    def join(self, parts: Iterable[Any]) -> str:
        """Return the joined parts."""
        found, size = [], 0
        for part in parts:
            found.append(self._to_text(part))
            size += len(found[-1])
            self._check_size(size)
        return "".join(found)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        __self.count()
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and getattr(__obj, "__name__", "") == "join":
            return __self._join_with(args[0], owner)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sized = (str, list, tuple)
        if operator == "+" and isinstance(left, sized) and isinstance(right, sized):
            self._check_size(len(left) + len(right))
        elif operator != "+" and (isinstance(left, sized) or isinstance(right, sized)):
            raise SecurityError(f"'{operator}' of texts and lists is not available")
        elif operator == "**" or (operator == "*" and abs(left * right) > MAX_TEXT):
            raise SecurityError(f"the result of '{operator}' is too large")
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for kind, names in _METHODS.items():
            if isinstance(obj, kind) and callable(value):
                return attr in names
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Any:
        return None  # a width in a format can make a long text

    def _join_with(self, parts: Iterable[Any], d: str = "") -> str:
        return self.join(_between(d, parts))

    def _finalize(self, value: Any) -> Any:
        """Return what is printed of a value."""
        return self._to_text(value) if isinstance(value, list | tuple | Mapping) else value

    def _to_text(self, value: Any) -> str:
        """Return the text of a value; nested lists may share parts, so their items are counted."""
        stack = [value]
        while stack:
            each = stack.pop()
            if isinstance(each, Mapping):
                stack += [*each, *each.values()]
            elif isinstance(each, list | tuple):
                stack += each
            self.count(int(each is not value))
        return str(value)

    def _check_size(self, size: int) -> None:
        if size > MAX_TEXT:
            raise SecurityError(f"it makes a text of more than {MAX_TEXT:,} characters")

    def _loop(self, items: Iterable[Any]) -> Iterator[Any] | list[Any]:
        found = []
        for item in items:
            self.count()
            found.append(item)
        return found

    def _range(self, *args: int) -> list[int]:
        self.count(len(range(*args)))
        return list(range(*args))

    def _to_json(self, value: Any, indent: int | None = None) -> str:
        self._to_text(value)
        text = json.dumps(value, ensure_ascii=False, indent=min(indent or 0, 8) or None)
        self._check_size(len(text))
        return text

    def _replace(self, value: str, old: str, new: str) -> str:
        text = str(value)
        self._check_size(len(text) + text.count(old) * len(new))
        return text.replace(old, new)


def _between(separator: str, parts: Iterable[Any]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if number:
            yield separator
        yield part


def _raise(message: str) -> None:
    raise TemplateError(message)


class _Bounds(NodeTransformer):
    """Replaces loops and joined texts by bounded ones."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _filter(cast("nodes.Expr", node.iter), _LOOP)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return _filter(nodes.Tuple(node.nodes, "load", lineno=node.lineno), _JOIN)


def _filter(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Generation(Extension):
    """The block ``generation`` of transformers, which marks answers; its content is kept."""

    tags = {"generation"}  # noqa: RUF012 -- as Jinja declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        body: list[nodes.Node] = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return body
