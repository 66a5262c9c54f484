"""A map from YAML, every fault found and placed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.errors import Problem, SpecError, ZooError, suggest
from zoo.exchange.mapping.combine_ops import Add, Join, Split, WeightNorm
from zoo.exchange.mapping.expression import Expression
from zoo.exchange.mapping.operation import Operation
from zoo.exchange.mapping.pattern import Pattern, paired_patterns
from zoo.exchange.mapping.reorder_ops import Gates, Rotary
from zoo.exchange.mapping.rules import Drop, Endpoint, Fill, Rule, TensorMap
from zoo.exchange.mapping.shape_ops import (
    Cast,
    Pad,
    Permute,
    Reshape,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import Document, KeyPath, document_from_data, format_path, read_file
from zoo.spec.reader import SpecReader

OPERATIONS: Mapping[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        *(Transpose, Permute, Reshape, Squeeze, Unsqueeze, Slice, Pad, Cast),
        *(Gates, Rotary, Split, Join, Add, WeightNorm),
    )
}
_FILLS = {"zeros": 0.0, "ones": 1.0}
_NAME = re.compile(r"\$([A-Za-z_]\w*)")

Number = Literal["zeros", "ones"] | float
Names = str | Sequence[str | Mapping[str, Any]]
Shape = Sequence[Annotated[int, Field(ge=0)]]


class Convert:
    """A rule with operations: what they have becomes what we have."""

    def __init__(self, *, theirs: Names, ours: Names, do: Sequence[Any] = ()) -> None: ...


class DropEntry:
    """Tensors that may go unused, and what an export puts there."""

    def __init__(
        self,
        *,
        name: str,
        export: Literal["omit"] | Number | None = None,
        shape: Shape | None = None,
    ) -> None: ...


class EndpointEntry:
    """One of several tensors of a rule, with operations of its own."""

    def __init__(self, *, name: str, do: Sequence[Any] = ()) -> None: ...


class MapSections:
    """The top level of a map."""

    def __init__(
        self,
        *,
        zoo: Annotated[int, Field(ge=1, le=1)],
        description: str = "",
        values: Mapping[str, int | str | Sequence[str]] | None = None,
        prefix: str = "",
        endings: Mapping[str, str] | None = None,
        rename: Mapping[str, str] | None = None,
        convert: Sequence[Blueprint[Convert]] = (),
        fill: Mapping[str, Number] | None = None,
        drop: Sequence[str | Mapping[str, Any]] = (),
    ) -> None: ...


def read_map(
    source: str | os.PathLike[str] | Mapping[str, Any], *, spec: Mapping[str, Any] | None = None
) -> TensorMap:
    """The map in a file or a dict, with its values taken from the resolved spec."""
    if isinstance(source, Mapping):
        return _MapParser(document_from_data(dict(source)), spec or {}).map()
    return _MapParser(read_file(os.fspath(source)), spec or {}).map()


class _MapParser:
    def __init__(self, document: Document, spec: Mapping[str, Any]) -> None:
        self.document = document
        self.spec = spec
        self.reader = SpecReader(document, ComponentRegistry())
        self.values: dict[str, int] = {}

    def map(self) -> TensorMap:
        top = self.reader.part(MapSections, self.document.data) or self._valid_sections()
        if top is None:
            raise SpecError(self.reader.problems)
        read = top.params
        self._read_values(read.get("values") or {})
        rules = [*self._renames(read.get("rename") or {}), *self._converts(read.get("convert", ()))]
        fills = [*self._fills(read.get("fill") or {})]
        drops = [*self._drops(read.get("drop", ()))]
        if self.reader.problems:
            raise SpecError(self.reader.problems)
        file = self.document.file or "map"
        endings = read.get("endings") or {}
        return TensorMap(file, rules, fills, drops, read.get("prefix", ""), endings)

    def _valid_sections(self) -> Blueprint[Any] | None:
        """What is left without the faulty sections, so that the others' faults are found too."""
        if not isinstance(self.document.data, dict):
            return None
        faulty = {re.split(r"[.\[]", problem.path)[0] for problem in self.reader.problems}
        sound = {key: value for key, value in self.document.data.items() if key not in faulty}
        return SpecReader(self.document, ComponentRegistry()).part(MapSections, {**sound, "zoo": 1})

    def _read_values(self, values: Mapping[str, Any]) -> None:
        for name, wanted in values.items():
            paths = [wanted] if isinstance(wanted, (int, str)) else wanted
            found = [p if isinstance(p, int) else _get_path(self.spec, p) for p in paths]
            whole = [value for value in found if type(value) is int]
            if whole:
                self.values[name] = whole[0]
            else:
                listed = " nor ".join(str(path) for path in paths)
                self._add_problem(f"the spec has no whole number at {listed}", ("values", name))

    def _renames(self, names: Mapping[str, str]) -> Iterator[Rule]:
        for ours, theirs in names.items():
            key_path = ("rename", ours)
            pair = self._patterns([ours], [theirs], key_path)
            if pair:
                (mine,), (other,) = pair
                yield Rule(
                    [Endpoint(other)],
                    [Endpoint(mine)],
                    (),
                    self.document.key(key_path),
                    format_path(key_path),
                )

    def _converts(self, blueprints: Sequence[Blueprint[Convert]]) -> Iterator[Rule]:
        for index, blueprint in enumerate(blueprints):
            key_path: KeyPath = ("convert", index)
            ends = {
                side: self._ends(blueprint.params[side], (*key_path, side))
                for side in ("ours", "theirs")
            }
            do = self._operations(blueprint.params.get("do", ()), (*key_path, "do"))
            ours, theirs = ([name for name, _ in ends[side]] for side in ("ours", "theirs"))
            pair = self._patterns(ours, theirs, key_path)
            if pair:
                targets, sources = (
                    [
                        Endpoint(pattern, do)
                        for pattern, (_, do) in zip(patterns, ends[side], strict=True)
                    ]
                    for patterns, side in zip(pair, ("ours", "theirs"), strict=True)
                )
                yield Rule(
                    sources, targets, do, self.document.place(key_path), format_path(key_path)
                )

    def _ends(self, names: Any, key_path: KeyPath) -> list[tuple[str, list[Operation]]]:
        listed = [names] if isinstance(names, str) else names
        if not listed:
            self._add_problem("names no tensor", key_path)
        ends: list[tuple[str, list[Operation]]] = []
        for index, item in enumerate(listed):
            if isinstance(item, str):
                ends.append((item, []))
                continue
            at = (*key_path, index)
            end = self.reader.part(EndpointEntry, item, at)
            if end:
                do = self._operations(end.params.get("do", ()), (*at, "do"))
                ends.append((end.params["name"], do))
        return ends

    def _operations(self, steps: Sequence[Any], key_path: KeyPath) -> list[Operation]:
        made = [self._operation(step, (*key_path, i)) for i, step in enumerate(steps)]
        return [operation for operation in made if operation]

    def _operation(self, step: Any, key_path: KeyPath) -> Operation | None:
        """``transpose``, or ``{rotary: {heads: 8}}``."""
        single = isinstance(step, dict) and len(step) == 1
        if not isinstance(step, str) and not single:
            self._add_problem(
                "should be an operation, as 'transpose' or 'rotary: {heads: 8, …}'", key_path
            )
            return None
        name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
        cls = OPERATIONS.get(name)
        if cls is None:
            self._add_problem(f"no operation named '{name}'{suggest(name, OPERATIONS)}", key_path)
            return None
        key_path = key_path if isinstance(step, str) else (*key_path, name)
        faults = len(self.reader.problems)
        arguments = self._evaluate_expressions(arguments, key_path)
        if len(self.reader.problems) > faults:
            return None
        if not isinstance(arguments, dict):
            arguments = {cls.shorthand: arguments} if cls.shorthand else arguments
        blueprint = self.reader.part(cls, arguments, key_path)
        if blueprint is None:
            return None
        try:
            made: Operation = cls(**blueprint.params)
            return made
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None

    def _fills(self, fills: Mapping[str, Any]) -> Iterator[Fill]:
        for name, value in fills.items():
            key_path = ("fill", name)
            pattern = self._pattern(name, key_path)
            if pattern:
                number = float(_FILLS.get(value, value))
                yield Fill(pattern, number, self.document.key(key_path), format_path(key_path))

    def _drops(self, drops: Sequence[Any]) -> Iterator[Drop]:
        for index, item in enumerate(drops):
            key_path: KeyPath = ("drop", index)
            entry = {"name": item} if isinstance(item, str) else dict(item)
            if "shape" in entry:
                entry["shape"] = self._evaluate_expressions(entry["shape"], (*key_path, "shape"))
            form = self.reader.part(DropEntry, entry, key_path)
            pattern = self._pattern(form.params["name"], key_path) if form else None
            if form is None or pattern is None:
                continue
            export: Any = form.params.get("export")
            shape: Any = form.params.get("shape")
            number = export not in (None, "omit")
            if number and (shape is None or pattern.names - pattern.words.keys()):
                self._add_problem(
                    f"'export: {export}' needs the 'shape', and a name whose numbers are listed, "
                    "as {n:0..8}",
                    key_path,
                )
            value = float(_FILLS.get(str(export), export)) if number else export
            yield Drop(pattern, self.document.place(key_path), format_path(key_path), value, shape)

    def _evaluate_expressions(self, value: Any, key_path: KeyPath) -> Any:
        """The value with ``$heads * 2`` worked out."""
        if isinstance(value, dict):
            return {
                key: self._evaluate_expressions(inner, (*key_path, key))
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._evaluate_expressions(inner, (*key_path, i)) for i, inner in enumerate(value)
            ]
        if not isinstance(value, str) or "$" not in value:
            return value
        try:
            return Expression(_NAME.sub(r"\1", value)).value(self.values)
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return value

    def _substitute_values(self, text: str) -> str:
        def number(found: re.Match[str]) -> str:
            return str(Expression(found[1]).value(self.values))

        return _NAME.sub(number, text)

    def _patterns(
        self, ours: Sequence[str], theirs: Sequence[str], key_path: KeyPath
    ) -> tuple[list[Pattern], list[Pattern]] | None:
        try:
            return paired_patterns(
                *([self._substitute_values(name) for name in side] for side in (ours, theirs))
            )
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None

    def _pattern(self, text: str, key_path: KeyPath) -> Pattern | None:
        try:
            return Pattern(self._substitute_values(text))
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None

    def _add_problem(self, message: str, key_path: KeyPath) -> None:
        named = key_path[0] in ("rename", "fill")  # their keys are names of tensors
        place = self.document.key(key_path) if named else self.document.place(key_path)
        self.reader.problems.append(Problem(message, format_path(key_path), place))


def _get_path(spec: Any, path: str) -> Any:
    """What stands at a path of a resolved spec, as ``model.decoder.attention.heads``."""
    for key in path.split("."):
        if isinstance(spec, Sequence) and not isinstance(spec, str) and key.isdigit():
            spec = spec[int(key)] if int(key) < len(spec) else None
        else:
            spec = spec.get(key) if isinstance(spec, Mapping) else None
    return spec
