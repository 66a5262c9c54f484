"""Reading of map files; every problem is reported with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zoo.errors import Problem, SpecError, ZooError, suggest
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import Document, KeyPath, document_from_data, format_path, read_file
from zoo.spec.reader import SpecReader
from zoo_exchange.mapping.copy_ops import Copy, Merge
from zoo_exchange.mapping.expression import Expression
from zoo_exchange.mapping.fill_value import to_fill_value
from zoo_exchange.mapping.map_schema import (
    OPERATIONS,
    ConvertSchema,
    DropSchema,
    EndpointSchema,
    MapSchema,
)
from zoo_exchange.mapping.name_values import VALUE, NameValues
from zoo_exchange.mapping.operation import Operation
from zoo_exchange.mapping.pattern import Pattern, paired_patterns, unlisted_indices
from zoo_exchange.mapping.rules import Drop, Endpoint, Fill, Rule, TensorMap

MAX_VALUES = 200
MAX_PROBLEMS = 200


def read_map(
    source: str | os.PathLike[str] | Mapping[str, Any], *, spec: Mapping[str, Any] | None = None
) -> TensorMap:
    """Return the map in a file or a dict, with its values read from the resolved spec."""
    if isinstance(source, Mapping):
        return _MapParser(document_from_data(dict(source)), spec or {}).parse()
    return _MapParser(read_file(os.fspath(source), "a map file"), spec or {}).parse()


class _MapParser:
    def __init__(self, document: Document, spec: Mapping[str, Any]) -> None:
        self.document = document
        self.spec = spec
        self.reader = SpecReader(document, ComponentRegistry())
        self.values: dict[str, int] = {}
        self.names = NameValues(self.values)

    def parse(self) -> TensorMap:
        sections = self.reader.part(MapSchema, self.document.data) or self._valid_sections()
        if sections is None:
            raise SpecError(self.reader.problems)
        params = sections.params
        self._read_values(params.get("values") or {})
        renames = self._renames(params.get("rename") or {})
        rules = [*renames, *self._converts(params.get("convert", ()))]
        fills = [*self._fills(params.get("fill") or {})]
        drops = [*self._drops(params.get("drop", ()))]
        if self.reader.problems:
            raise SpecError(self.reader.problems)
        file = self.document.file or "map"
        endings = params.get("endings") or {}
        return TensorMap(file, rules, fills, drops, params.get("prefix", ""), endings)

    def _valid_sections(self) -> Blueprint[Any] | None:
        """Return the sections without problems, so that those in their entries are found too."""
        if not isinstance(self.document.data, dict):
            return None
        invalid = {re.split(r"[.\[]", problem.path)[0] for problem in self.reader.problems}
        valid = {key: value for key, value in self.document.data.items() if key not in invalid}
        return SpecReader(self.document, ComponentRegistry()).part(MapSchema, {**valid, "zoo": 1})

    def _read_values(self, values: Mapping[str, Any]) -> None:
        if len(values) > MAX_VALUES:
            self._add_problem(
                f"has {len(values):,} values; at most {MAX_VALUES} are allowed", ("values",)
            )
            raise SpecError(self.reader.problems)
        for name, value in values.items():
            paths = [value] if isinstance(value, (int, str)) else value
            found = [p if isinstance(p, int) else _get_path(self.spec, p) for p in paths]
            integers = [item for item in found if type(item) is int]
            if integers:
                self.values[name] = integers[0]
            else:
                listed = " or ".join(str(path) for path in paths)
                self._add_problem(f"the spec has no integer at {listed}", ("values", name))

    def _renames(self, names: Mapping[str, str]) -> Iterator[Rule]:
        for ours, theirs in names.items():
            key_path = ("rename", ours)
            pair = self._patterns([ours], [theirs], key_path, one_sided=True)
            if pair:
                (target,), (source,) = pair
                yield Rule(
                    [Endpoint(source)],
                    [Endpoint(target)],
                    _copy_steps(*pair),
                    place=self.document.key(key_path),
                    path=format_path(key_path),
                )

    def _converts(self, blueprints: Sequence[Blueprint[ConvertSchema]]) -> Iterator[Rule]:
        for index, blueprint in enumerate(blueprints):
            key_path: KeyPath = ("convert", index)
            ours, theirs = (
                self._endpoints(blueprint.params[side], (*key_path, side))
                for side in ("ours", "theirs")
            )
            operations = self._operations(blueprint.params.get("do", ()), (*key_path, "do"))
            # Operations on each tensor separately keep the number of tensors.
            separate = all(type(step).apply is Operation.apply for step in operations)
            one_sided = separate and len(ours) == len(theirs) == 1
            pair = self._patterns(
                [name for name, _ in ours],
                [name for name, _ in theirs],
                key_path,
                one_sided=one_sided,
            )
            if pair:
                copies = _copy_steps(*pair) if one_sided else []
                is_merge = any(isinstance(step, Merge) for step in copies)
                operations = [*copies, *operations] if is_merge else [*operations, *copies]
                targets, sources = (
                    [
                        Endpoint(pattern, own)
                        for pattern, (_, own) in zip(patterns, side, strict=True)
                    ]
                    for patterns, side in zip(pair, (ours, theirs), strict=True)
                )
                yield Rule(
                    sources,
                    targets,
                    operations,
                    place=self.document.place(key_path),
                    path=format_path(key_path),
                )

    def _endpoints(self, names: Any, key_path: KeyPath) -> list[tuple[str, list[Operation]]]:
        listed = [names] if isinstance(names, str) else names
        if not listed:
            self._add_problem("should name at least one tensor", key_path)
        endpoints: list[tuple[str, list[Operation]]] = []
        for index, item in enumerate(listed):
            if isinstance(item, str):
                endpoints.append((item, []))
                continue
            item_path = (*key_path, index)
            endpoint = self.reader.part(EndpointSchema, item, item_path)
            if endpoint:
                own = self._operations(endpoint.params.get("do", ()), (*item_path, "do"))
                endpoints.append((endpoint.params["name"], own))
        return endpoints

    def _operations(self, steps: Sequence[Any], key_path: KeyPath) -> list[Operation]:
        parsed = [self._operation(step, (*key_path, i)) for i, step in enumerate(steps)]
        return [operation for operation in parsed if operation]

    def _operation(self, step: Any, key_path: KeyPath) -> Operation | None:
        """Return the operation of ``transpose`` or ``{rotary: {heads: 8}}``."""
        has_arguments = isinstance(step, dict) and len(step) == 1
        if not isinstance(step, str) and not has_arguments:
            self._add_problem(
                "should be an operation, such as 'transpose' or 'rotary: {heads: 8, …}'", key_path
            )
            return None
        name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
        cls = OPERATIONS.get(name)
        if cls is None:
            self._add_problem(f"no operation named '{name}'{suggest(name, OPERATIONS)}", key_path)
            return None
        key_path = key_path if isinstance(step, str) else (*key_path, name)
        num_problems = len(self.reader.problems)
        arguments = self._evaluate_expressions(arguments, key_path)
        if len(self.reader.problems) > num_problems:
            return None
        if not isinstance(arguments, dict):
            arguments = {cls.shorthand: arguments} if cls.shorthand else arguments
        blueprint = self.reader.part(cls, arguments, key_path)
        if blueprint is None:
            return None
        try:
            operation: Operation = cls(**blueprint.params)
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None
        return operation

    def _fills(self, fills: Mapping[str, Any]) -> Iterator[Fill]:
        for name, value in fills.items():
            key_path = ("fill", name)
            pattern = self._pattern(name, key_path)
            if pattern:
                yield Fill(
                    pattern,
                    to_fill_value(value),
                    place=self.document.key(key_path),
                    path=format_path(key_path),
                )

    def _drops(self, drops: Sequence[Any]) -> Iterator[Drop]:
        for index, item in enumerate(drops):
            key_path: KeyPath = ("drop", index)
            entry = {"name": item} if isinstance(item, str) else dict(item)
            if "shape" in entry:
                entry["shape"] = self._evaluate_expressions(entry["shape"], (*key_path, "shape"))
            blueprint = self.reader.part(DropSchema, entry, key_path)
            if blueprint is None:
                continue
            pattern = self._pattern(blueprint.params["name"], key_path)
            if pattern is None:
                continue
            export: Any = blueprint.params.get("export")
            shape: Any = blueprint.params.get("shape")
            has_value = export not in (None, "omit")
            if has_value and (shape is None or pattern.expressions):
                self._add_problem(
                    f"'export: {export}' needs 'shape', and a list of values for each index in "
                    "the name, such as {n:0..8}",
                    key_path,
                )
            yield Drop(
                pattern,
                to_fill_value(export) if has_value else None,
                export == "omit",
                shape,
                purpose=blueprint.params.get("purpose", ""),
                classes=blueprint.params.get("classes", ()),
                place=self.document.place(key_path),
                path=format_path(key_path),
            )

    def _evaluate_expressions(self, value: Any, key_path: KeyPath) -> Any:
        """Return the value with expressions such as ``$heads * 2`` evaluated."""
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
            return Expression(VALUE.sub(r"\1", value)).value(self.values)
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return value

    def _patterns(
        self,
        ours: Sequence[str],
        theirs: Sequence[str],
        key_path: KeyPath,
        *,
        one_sided: bool,
    ) -> tuple[list[Pattern], list[Pattern]] | None:
        try:
            return paired_patterns(
                *([self.names.replace(name) for name in side] for side in (ours, theirs)),
                one_sided=one_sided,
            )
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None

    def _pattern(self, text: str, key_path: KeyPath) -> Pattern | None:
        try:
            return Pattern(self.names.replace(text))
        except ZooError as error:
            self._add_problem(str(error), key_path)
            return None

    def _add_problem(self, message: str, key_path: KeyPath) -> None:
        is_name = key_path[0] in ("rename", "fill")  # their keys are tensor names
        place = self.document.key(key_path) if is_name else self.document.place(key_path)
        self.reader.problems.append(Problem(message, format_path(key_path), place))
        if len(self.reader.problems) > MAX_PROBLEMS:
            raise SpecError(self.reader.problems)


def _copy_steps(ours: Sequence[Pattern], theirs: Sequence[Pattern]) -> list[Operation]:
    """Return 'copy' if only our names have an index, 'merge' if only theirs have one."""
    our_indices, their_indices = unlisted_indices(ours).keys(), unlisted_indices(theirs).keys()
    if our_indices - their_indices:
        return [Copy()]
    return [Merge()] if their_indices - our_indices else []


def _get_path(spec: Any, path: str) -> Any:
    """Return the value at a path of a resolved spec, such as ``model.decoder.attention.heads``."""
    for key in path.split("."):
        if isinstance(spec, Sequence) and not isinstance(spec, str) and key.isdigit():
            spec = spec[int(key)] if int(key) < len(spec) else None
        else:
            spec = spec.get(key) if isinstance(spec, Mapping) else None
    return spec
