"""A map from YAML, every fault found and placed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.errors import Problem, SpecError, ZooError, suggest
from zoo.exchange.mapping.combining import Add, Join, Split, WeightNorm
from zoo.exchange.mapping.expression import Expression
from zoo.exchange.mapping.operation import Operation
from zoo.exchange.mapping.ordering import Gates, Rotary
from zoo.exchange.mapping.pattern import Pattern, corresponding
from zoo.exchange.mapping.rules import Drop, End, Fill, Map, Rule
from zoo.exchange.mapping.shaping import (
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
from zoo.registry.component_registry import Registry
from zoo.spec.document import Document, Trail, dotted, of_data, read_file
from zoo.spec.reader import Reader

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


class Dropped:
    """Tensors that may go unused, and what an export puts there."""

    def __init__(
        self,
        *,
        name: str,
        export: Literal["omit"] | Number | None = None,
        shape: Shape | None = None,
    ) -> None: ...


class OneEnd:
    """One of several tensors of a rule, with operations of its own."""

    def __init__(self, *, name: str, do: Sequence[Any] = ()) -> None: ...


class Sections:
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
) -> Map:
    """The map in a file or a dict, with its values taken from the resolved spec."""
    if isinstance(source, Mapping):
        return _Reading(of_data(dict(source)), spec or {}).map()
    return _Reading(read_file(os.fspath(source)), spec or {}).map()


class _Reading:
    def __init__(self, document: Document, spec: Mapping[str, Any]) -> None:
        self.document = document
        self.spec = spec
        self.reader = Reader(document, Registry())
        self.values: dict[str, int] = {}

    def map(self) -> Map:
        top = self.reader.part(Sections, self.document.data) or self._sound_sections()
        if top is None:
            raise SpecError(self.reader.problems)
        read = top.params
        self._take_values(read.get("values") or {})
        rules = [*self._renames(read.get("rename") or {}), *self._converts(read.get("convert", ()))]
        fills = [*self._fills(read.get("fill") or {})]
        drops = [*self._drops(read.get("drop", ()))]
        if self.reader.problems:
            raise SpecError(self.reader.problems)
        file = self.document.file or "map"
        endings = read.get("endings") or {}
        return Map(file, rules, fills, drops, read.get("prefix", ""), endings)

    def _sound_sections(self) -> Blueprint[Any] | None:
        """What is left without the faulty sections, so that the others' faults are found too."""
        if not isinstance(self.document.data, dict):
            return None
        faulty = {re.split(r"[.\[]", problem.path)[0] for problem in self.reader.problems}
        sound = {key: value for key, value in self.document.data.items() if key not in faulty}
        return Reader(self.document, Registry()).part(Sections, {**sound, "zoo": 1})

    def _take_values(self, values: Mapping[str, Any]) -> None:
        for name, wanted in values.items():
            paths = [wanted] if isinstance(wanted, (int, str)) else wanted
            found = [p if isinstance(p, int) else _at(self.spec, p) for p in paths]
            whole = [value for value in found if type(value) is int]
            if whole:
                self.values[name] = whole[0]
            else:
                listed = " nor ".join(str(path) for path in paths)
                self._fault(f"the spec has no whole number at {listed}", ("values", name))

    def _renames(self, names: Mapping[str, str]) -> Iterator[Rule]:
        for ours, theirs in names.items():
            trail = ("rename", ours)
            pair = self._patterns([ours], [theirs], trail)
            if pair:
                (mine,), (other,) = pair
                yield Rule([End(other)], [End(mine)], (), self.document.key(trail), dotted(trail))

    def _converts(self, blueprints: Sequence[Blueprint[Convert]]) -> Iterator[Rule]:
        for index, blueprint in enumerate(blueprints):
            trail: Trail = ("convert", index)
            ends = {
                side: self._ends(blueprint.params[side], (*trail, side))
                for side in ("ours", "theirs")
            }
            do = self._operations(blueprint.params.get("do", ()), (*trail, "do"))
            ours, theirs = ([name for name, _ in ends[side]] for side in ("ours", "theirs"))
            pair = self._patterns(ours, theirs, trail)
            if pair:
                targets, sources = (
                    [
                        End(pattern, do)
                        for pattern, (_, do) in zip(patterns, ends[side], strict=True)
                    ]
                    for patterns, side in zip(pair, ("ours", "theirs"), strict=True)
                )
                yield Rule(sources, targets, do, self.document.place(trail), dotted(trail))

    def _ends(self, names: Any, trail: Trail) -> list[tuple[str, list[Operation]]]:
        listed = [names] if isinstance(names, str) else names
        if not listed:
            self._fault("names no tensor", trail)
        ends: list[tuple[str, list[Operation]]] = []
        for index, item in enumerate(listed):
            if isinstance(item, str):
                ends.append((item, []))
                continue
            at = (*trail, index)
            end = self.reader.part(OneEnd, item, at)
            if end:
                do = self._operations(end.params.get("do", ()), (*at, "do"))
                ends.append((end.params["name"], do))
        return ends

    def _operations(self, steps: Sequence[Any], trail: Trail) -> list[Operation]:
        made = [self._operation(step, (*trail, i)) for i, step in enumerate(steps)]
        return [operation for operation in made if operation]

    def _operation(self, step: Any, trail: Trail) -> Operation | None:
        """``transpose``, or ``{rotary: {heads: 8}}``."""
        single = isinstance(step, dict) and len(step) == 1
        if not isinstance(step, str) and not single:
            self._fault("should be an operation, as 'transpose' or 'rotary: {heads: 8, …}'", trail)
            return None
        name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
        cls = OPERATIONS.get(name)
        if cls is None:
            self._fault(f"no operation named '{name}'{suggest(name, OPERATIONS)}", trail)
            return None
        trail = trail if isinstance(step, str) else (*trail, name)
        faults = len(self.reader.problems)
        arguments = self._numbered(arguments, trail)
        if len(self.reader.problems) > faults:
            return None
        if not isinstance(arguments, dict):
            arguments = {cls.short: arguments} if cls.short else arguments
        blueprint = self.reader.part(cls, arguments, trail)
        if blueprint is None:
            return None
        try:
            made: Operation = cls(**blueprint.params)
            return made
        except ZooError as error:
            self._fault(str(error), trail)
            return None

    def _fills(self, fills: Mapping[str, Any]) -> Iterator[Fill]:
        for name, value in fills.items():
            trail = ("fill", name)
            pattern = self._pattern(name, trail)
            if pattern:
                number = float(_FILLS.get(value, value))
                yield Fill(pattern, number, self.document.key(trail), dotted(trail))

    def _drops(self, drops: Sequence[Any]) -> Iterator[Drop]:
        for index, item in enumerate(drops):
            trail: Trail = ("drop", index)
            said = {"name": item} if isinstance(item, str) else dict(item)
            if "shape" in said:
                said["shape"] = self._numbered(said["shape"], (*trail, "shape"))
            form = self.reader.part(Dropped, said, trail)
            pattern = self._pattern(form.params["name"], trail) if form else None
            if form is None or pattern is None:
                continue
            export: Any = form.params.get("export")
            shape: Any = form.params.get("shape")
            number = export not in (None, "omit")
            if number and (shape is None or pattern.names - pattern.words.keys()):
                self._fault(
                    f"'export: {export}' needs the 'shape', and a name whose numbers are listed, "
                    "as {n:0..8}",
                    trail,
                )
            value = float(_FILLS.get(str(export), export)) if number else export
            yield Drop(pattern, self.document.place(trail), dotted(trail), value, shape)

    def _numbered(self, value: Any, trail: Trail) -> Any:
        """The value with ``$heads * 2`` worked out."""
        if isinstance(value, dict):
            return {key: self._numbered(inner, (*trail, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._numbered(inner, (*trail, i)) for i, inner in enumerate(value)]
        if not isinstance(value, str) or "$" not in value:
            return value
        try:
            return Expression(_NAME.sub(r"\1", value)).value(self.values)
        except ZooError as error:
            self._fault(str(error), trail)
            return value

    def _named(self, text: str) -> str:
        def number(found: re.Match[str]) -> str:
            return str(Expression(found[1]).value(self.values))

        return _NAME.sub(number, text)

    def _patterns(
        self, ours: Sequence[str], theirs: Sequence[str], trail: Trail
    ) -> tuple[list[Pattern], list[Pattern]] | None:
        try:
            return corresponding(*([self._named(name) for name in side] for side in (ours, theirs)))
        except ZooError as error:
            self._fault(str(error), trail)
            return None

    def _pattern(self, text: str, trail: Trail) -> Pattern | None:
        try:
            return Pattern(self._named(text))
        except ZooError as error:
            self._fault(str(error), trail)
            return None

    def _fault(self, message: str, trail: Trail) -> None:
        named = trail[0] in ("rename", "fill")  # their keys are names of tensors
        place = self.document.key(trail) if named else self.document.place(trail)
        self.reader.problems.append(Problem(message, dotted(trail), place))


def _at(spec: Any, path: str) -> Any:
    """What stands at a path of a resolved spec, as ``model.decoder.attention.heads``."""
    for key in path.split("."):
        if isinstance(spec, Sequence) and not isinstance(spec, str) and key.isdigit():
            spec = spec[int(key)] if int(key) < len(spec) else None
        else:
            spec = spec.get(key) if isinstance(spec, Mapping) else None
    return spec
