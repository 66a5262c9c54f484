"""YAML documents as plain data, with the place of every key and value.

The reader handles parser events and creates no objects, so a text cannot name a Python type. Size,
depth and number of values are limited. Plain scalars follow the core schema of YAML 1.2: ``1e-4``
is a number, ``no`` is a string.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from zoo.errors import Place, Problem, SpecError
from zoo.files import is_safetensors

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


MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_NODES = 20_000

KeyPath = tuple[str | int, ...]
"""The keys and indices from the root to a value."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_path(key_path: KeyPath) -> str:
    """Format a path: ``model.layers[2].scorer``."""
    text = ""
    for step in key_path:
        text += f"[{step}]" if type(step) is int else f".{step}" if text else str(step)
    return text


@dataclass
class Document:
    """Plain data with the place of each key and value."""

    data: Any
    file: str
    values: dict[KeyPath, Place] = field(default_factory=dict)
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    base: str | None = None
    """The name of the model with weights whose spec this one extends."""

    def place(self, key_path: KeyPath) -> Place | None:
        """Return the place of a value, or of the innermost value around it."""
        while key_path and key_path not in self.values:
            key_path = key_path[:-1]
        return self.values.get(key_path)

    def key(self, key_path: KeyPath) -> Place | None:
        """Return the place of a key, or of the innermost value around it."""
        return self.keys.get(key_path) or self.place(key_path)


def read_file(path: str | Path, expected: str = "a spec file") -> Document:
    """Read a document from a file; raise SpecError if it cannot be read or is empty."""
    name = str(path)

    def spec_error(message: str) -> SpecError:
        return SpecError([Problem(message, place=Place(name))])

    try:
        if os.path.isdir(path):
            raise spec_error(f"is a directory; expected {expected}")
        with open(path, "rb") as file:  # once, because it may be a pipe
            raw, size = file.read(MAX_BYTES + 1), os.fstat(file.fileno()).st_size
        if is_safetensors(raw, size):
            raise spec_error(f"is a model; expected {expected} (see 'zoo info {name}')")
        if size > MAX_BYTES:
            raise spec_error(f"has {size:,} bytes; the limit is {MAX_BYTES:,}")
    except FileNotFoundError:
        raise spec_error("no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise spec_error(f"cannot be read: {reason.lower()}") from None
    if len(raw) > MAX_BYTES:
        raise spec_error(f"has more than {MAX_BYTES:,} bytes, which is the limit")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()  # without the BOM
        message = f"is not UTF-8 text: invalid byte 0x{error.object[error.start]:02x}"
        raise SpecError([Problem(message, place=_place_after(before, name))]) from None
    document = read_text(text, name)
    if document.data is None:
        empty = Problem(f"is empty; expected {expected}, with 'zoo: 1'", place=Place(name))
        raise SpecError([*document.problems, empty])
    return document


def _place_after(before: str, file: str) -> Place:
    return Place(file, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


def read_text(text: str, file: str) -> Document:
    """Read a document from a text; `file` is the name in its places."""
    return _EventReader(file).read(text)


def read_option(text: str, option: str) -> Document:
    """Read the value of a command-line option; places name the option, without line and column."""
    try:
        document = read_text(text, option)
    except SpecError as error:
        raise SpecError([replace(p, place=Place(option)) for p in error.problems]) from None
    document.values = dict.fromkeys(document.values, Place(option))
    document.keys = dict.fromkeys(document.keys, Place(option))
    document.problems = [replace(p, place=Place(option)) for p in document.problems]
    return document


def document_from_data(data: Any, file: str = "") -> Document:
    """Return a document of Python data, without places."""
    return Document(data, file)


@dataclass
class _OpenNode:
    """Mapping or list that is not complete yet."""

    value: dict[str, Any] | list[Any]
    key_path: KeyPath
    anchor: str | None
    key: str | None = None


class _EventReader:
    def __init__(self, file: str) -> None:
        self.document = Document(None, file)
        self.stack: list[_OpenNode] = []
        self.anchors: dict[str, tuple[Any, KeyPath]] = {}
        self.nodes = 0
        self.documents = 0

    def read(self, text: str) -> Document:
        forbidden = _FORBIDDEN.search(text)
        if forbidden:
            message = f"character {forbidden[0]!r} is not allowed in YAML"
            place = _place_after(text[: forbidden.start()], self.document.file)
            raise SpecError([Problem(message, place=place)])
        try:
            for event in yaml.parse(text, Loader=_Loader):
                self._handle_event(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._spec_error(mark, _describe_yaml_error(error, text)) from None
        except yaml.YAMLError as error:
            raise self._spec_error(None, f"invalid YAML: {error}") from None
        return self.document

    def _handle_event(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._spec_error(
                    event.start_mark, "contains a second document ('---'); expected one"
                )
        if isinstance(event, yaml.NodeEvent):
            self._handle_node(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self.stack.pop()
            if done.anchor:
                self.anchors[done.anchor] = (done.value, done.key_path)

    def _handle_node(self, event: Any) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._spec_error(event.start_mark, f"has more than {MAX_NODES:,} values")
        if getattr(event, "tag", None):
            raise self._spec_error(
                event.start_mark,
                f"tag '{event.tag}' is not allowed; a spec contains plain data only",
            )
        top = self.stack[-1] if self.stack else None
        if top and isinstance(top.value, dict) and top.key is None:
            self._handle_key(event, top)
            return
        key_path = self._child_path(top)
        self.document.values[key_path] = self._place(event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            self._set_value(top, self._parse_scalar(event), event.anchor, key_path)
        elif isinstance(event, yaml.AliasEvent):
            self._set_value(top, self._expand_alias(event, key_path), None, key_path)
        else:
            if len(self.stack) >= MAX_DEPTH:
                raise self._spec_error(
                    event.start_mark, f"is nested more than {MAX_DEPTH} levels deep"
                )
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._set_value(top, value, None, key_path)
            self.stack.append(_OpenNode(value, key_path, event.anchor))

    def _handle_key(self, event: Any, top: _OpenNode) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._spec_error(event.start_mark, "a key must be a plain scalar")
        if event.value == "<<":
            raise self._spec_error(event.start_mark, "merge key '<<' is not allowed; use 'extends'")
        key = event.value
        key_path = (*top.key_path, key)
        place = self._place(event.start_mark)
        if isinstance(top.value, dict) and key in top.value:
            first = self.document.keys[key_path]
            message = f"duplicate key '{key}'; the first is in line {first.line}"
            self.document.problems.append(Problem(message, format_path(key_path), place))
        else:
            self.document.keys[key_path] = place
        top.key = key

    def _child_path(self, top: _OpenNode | None) -> KeyPath:
        if top is None:
            return ()
        return (*top.key_path, len(top.value) if isinstance(top.value, list) else top.key or "")

    def _set_value(
        self, top: _OpenNode | None, value: Any, anchor: str | None, key_path: KeyPath
    ) -> None:
        if anchor:
            self.anchors[anchor] = (value, key_path)
        if top is None:
            self.document.data = value
        elif isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value[str(top.key)] = value
            top.key = None

    def _parse_scalar(self, event: Any) -> Any:
        if not event.implicit[0]:  # quoted
            return event.value
        try:
            return resolve_scalar(event.value)
        except ValueError as error:
            raise self._spec_error(event.start_mark, str(error)) from None

    def _expand_alias(self, event: Any, key_path: KeyPath) -> Any:
        """Return a copy of the anchored value; every value in it counts against the limit."""
        if event.anchor not in self.anchors:
            raise self._spec_error(
                event.start_mark, f"alias '*{event.anchor}' has no anchor before it"
            )
        anchored, origin = self.anchors[event.anchor]

        def copy(value: Any, was: KeyPath, now: KeyPath) -> Any:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise self._spec_error(
                    event.start_mark, f"aliases expand to more than {MAX_NODES:,} values"
                )
            if len(now) > MAX_DEPTH:
                raise self._spec_error(
                    event.start_mark, f"aliases expand to more than {MAX_DEPTH} levels"
                )
            for table in (self.document.values, self.document.keys):
                if was in table:
                    table.setdefault(now, table[was])
            if isinstance(value, dict):
                return {k: copy(v, (*was, k), (*now, k)) for k, v in value.items()}
            if isinstance(value, list):
                return [copy(v, (*was, i), (*now, i)) for i, v in enumerate(value)]
            return value

        return copy(anchored, origin, key_path)

    def _place(self, mark: Any) -> Place:
        return Place(self.document.file, mark.line + 1, mark.column + 1)

    def _spec_error(self, mark: Any, message: str) -> SpecError:
        place = self._place(mark) if mark else Place(self.document.file)
        # Problems found before the fatal one are reported too.
        return SpecError([*self.document.problems, Problem(message, place=place)])


def _describe_yaml_error(error: yaml.MarkedYAMLError, text: str) -> str:
    mark, start = error.problem_mark, error.context_mark
    line = _line(text, mark.line) if mark else ""
    if mark and "\t" in line[: len(line) - len(line.lstrip())][: mark.column + 1]:
        return "tab in the indentation; YAML allows spaces only"
    far = (
        f" that starts in line {start.line + 1}"
        if start and mark and start.line != mark.line
        else ""
    )
    context = f" ({error.context}{far})" if error.context else ""
    return f"invalid YAML: {error.problem or 'it cannot be parsed'}{context}"


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number] if number < len(lines) else ""
