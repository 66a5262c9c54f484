"""YAML text to plain data with the place of every key and value.

Reads parser events rather than objects, so nothing in the text can name a Python type, and
stops at a limit of size, depth and count, so nothing in it can take long. Plain scalars follow
YAML 1.2's core schema: ``1e-4`` is a number, ``no`` is a word.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from zoo.errors import Place, Problem, SpecError

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_NODES = 20_000
MAX_DIGITS = 40

Trail = tuple[str | int, ...]
"""The keys and indices that lead from the top to a value."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_BARRED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
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


def dotted(trail: Trail) -> str:
    """A trail as people write it: ``model.layers[2].scorer``."""
    text = ""
    for step in trail:
        text += f"[{step}]" if type(step) is int else f".{step}" if text else str(step)
    return text


@dataclass
class Document:
    """Plain data, and where each part of it stood."""

    data: Any
    file: str
    values: dict[Trail, Place] = field(default_factory=dict)
    keys: dict[Trail, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, trail: Trail) -> Place | None:
        """Where the value stands, or the nearest thing around it."""
        while trail and trail not in self.values:
            trail = trail[:-1]
        return self.values.get(trail)

    def key(self, trail: Trail) -> Place | None:
        return self.keys.get(trail) or self.place(trail)


def read_file(path: str | Path) -> Document:
    """The document in a file; SpecError if there is none to be read."""
    name = str(path)

    def refused(message: str) -> SpecError:
        return SpecError([Problem(message, place=Place(name, 1, 1))])

    try:
        if os.path.isdir(path):
            raise refused("is a directory, not a spec file")
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise refused(f"has {size:,} bytes; a spec has at most {MAX_BYTES:,}")
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refused(f"cannot be read: {reason.lower()}") from None
    if len(raw) > MAX_BYTES:
        raise refused(f"has more than the {MAX_BYTES:,} bytes of a spec")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()  # behind a BOM, which is not counted
        message = f"is not UTF-8 text: byte 0x{error.object[error.start]:02x} has no meaning here"
        raise SpecError([Problem(message, place=_after(before, name))]) from None
    document = read_text(text, name)
    if document.data is None:
        raise SpecError(
            [
                *document.problems,
                Problem("is empty; it should begin with 'zoo: 1'", place=Place(name, 1, 1)),
            ]
        )
    return document


def _after(before: str, file: str) -> Place:
    return Place(file, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


def read_text(text: str, file: str) -> Document:
    """The document in a text."""
    return _Reader(file).read(text)


def of_data(data: Any, file: str = "") -> Document:
    """A document of data that Python code made; it has no places."""
    return Document(data, file)


def resolve_scalar(text: str) -> Any:
    """A plain scalar's value, by YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


@dataclass
class _Open:
    """A mapping or list whose end has not come yet."""

    value: dict[str, Any] | list[Any]
    trail: Trail
    anchor: str | None
    key: str | None = None


class _Reader:
    def __init__(self, file: str) -> None:
        self.document = Document(None, file)
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, Trail]] = {}
        self.nodes = 0
        self.documents = 0

    def read(self, text: str) -> Document:
        barred = _BARRED.search(text)
        if barred:
            message = f"character {barred[0]!r} is not allowed in YAML"
            place = _after(text[: barred.start()], self.document.file)
            raise SpecError([Problem(message, place=place)])
        try:
            for event in yaml.parse(text, Loader=_Loader):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._refused(mark, _in_words(error, text)) from None
        except yaml.YAMLError as error:
            raise self._refused(None, f"is not YAML: {error}") from None
        return self.document

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._refused(
                    event.start_mark, "holds a second document ('---'); a spec is one"
                )
        if isinstance(event, yaml.NodeEvent):
            self._node(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self.stack.pop()
            if done.anchor:
                self.anchors[done.anchor] = (done.value, done.trail)

    def _node(self, event: Any) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._refused(event.start_mark, f"has more than {MAX_NODES:,} values")
        if getattr(event, "tag", None):
            raise self._refused(
                event.start_mark, f"tag '{event.tag}' is refused; specs hold plain data"
            )
        top = self.stack[-1] if self.stack else None
        if top and isinstance(top.value, dict) and top.key is None:
            self._key(event, top)
            return
        trail = self._trail(top)
        self.document.values[trail] = self._place(event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            self._put(top, self._scalar(event), event.anchor, trail)
        elif isinstance(event, yaml.AliasEvent):
            self._put(top, self._expanded(event, trail), None, trail)
        else:
            if len(self.stack) >= MAX_DEPTH:
                raise self._refused(event.start_mark, f"is nested more than {MAX_DEPTH} deep")
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._put(top, value, None, trail)
            self.stack.append(_Open(value, trail, event.anchor))

    def _key(self, event: Any, top: _Open) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refused(event.start_mark, "a key must be a plain word")
        if event.value == "<<":
            raise self._refused(event.start_mark, "merge key '<<' is refused; use 'extends'")
        key = event.value
        trail = (*top.trail, key)
        place = self._place(event.start_mark)
        if isinstance(top.value, dict) and key in top.value:
            first = self.document.keys[trail]
            message = f"key '{key}' stands here a second time; the first is in line {first.line}"
            self.document.problems.append(Problem(message, dotted(trail), place))
        else:
            self.document.keys[trail] = place
        top.key = key

    def _trail(self, top: _Open | None) -> Trail:
        if top is None:
            return ()
        return (*top.trail, len(top.value) if isinstance(top.value, list) else top.key or "")

    def _put(self, top: _Open | None, value: Any, anchor: str | None, trail: Trail) -> None:
        if anchor:
            self.anchors[anchor] = (value, trail)
        if top is None:
            self.document.data = value
        elif isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value[str(top.key)] = value
            top.key = None

    def _scalar(self, event: Any) -> Any:
        if not event.implicit[0]:  # quoted
            return event.value
        if len(event.value) > MAX_DIGITS and (
            _INT.fullmatch(event.value) or _BASED.fullmatch(event.value)
        ):
            raise self._refused(event.start_mark, f"a number of more than {MAX_DIGITS} digits")
        return resolve_scalar(event.value)

    def _expanded(self, event: Any, trail: Trail) -> Any:
        """A copy of what the alias stands for, counted against the limit node by node."""
        if event.anchor not in self.anchors:
            raise self._refused(
                event.start_mark, f"alias '*{event.anchor}' stands for nothing before it"
            )
        source, origin = self.anchors[event.anchor]

        def copy(value: Any, was: Trail, now: Trail) -> Any:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise self._refused(
                    event.start_mark, f"its aliases unfold to more than {MAX_NODES:,} values"
                )
            if len(now) > MAX_DEPTH:
                raise self._refused(
                    event.start_mark, f"its aliases nest more than {MAX_DEPTH} deep"
                )
            for table in (self.document.values, self.document.keys):
                if was in table:
                    table.setdefault(now, table[was])
            if isinstance(value, dict):
                return {k: copy(v, (*was, k), (*now, k)) for k, v in value.items()}
            if isinstance(value, list):
                return [copy(v, (*was, i), (*now, i)) for i, v in enumerate(value)]
            return value

        return copy(source, origin, trail)

    def _place(self, mark: Any) -> Place:
        return Place(self.document.file, mark.line + 1, mark.column + 1)

    def _refused(self, mark: Any, message: str) -> SpecError:
        place = self._place(mark) if mark else Place(self.document.file, 1, 1)
        # What was found before the fatal fault is still worth saying.
        return SpecError([*self.document.problems, Problem(message, place=place)])


def _in_words(error: yaml.MarkedYAMLError, text: str) -> str:
    mark, began = error.problem_mark, error.context_mark
    line = _line(text, mark.line) if mark else ""
    if mark and "\t" in line[: len(line) - len(line.lstrip())][: mark.column + 1]:
        return "a tab stands in the indentation; YAML takes spaces only"
    far = f", begun in line {began.line + 1}" if began and mark and began.line != mark.line else ""
    context = f" ({error.context}{far})" if error.context else ""
    return f"is not YAML: {error.problem or 'it cannot be parsed'}{context}"


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number] if number < len(lines) else ""
