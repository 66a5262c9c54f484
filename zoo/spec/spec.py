"""A spec: the tree of parts that a YAML file, a shipped name or a dict describes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from zoo.errors import Place, Problem, RegistryError, SpecError, truncate
from zoo.interfaces import Filter, Metric, Model, Objective, Sampler
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import MAX_DEPTH, Document, KeyPath, document_from_data, read_file, read_text
from zoo.spec.reader import SpecReader

Source = str | os.PathLike[str] | Mapping[str, Any]
"""A spec file's path, the name of a shipped spec, or the spec itself as a dict."""

MAX_EXTENDS = 8
OVERRIDE_EXAMPLE = "model.encoder.hidden=64"


class Sections:
    """The top level of a spec; its signature is the schema, as for any part."""

    def __init__(
        self,
        *,
        zoo: Annotated[int, Field(ge=1, le=1)],
        name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=96)],
        model: Blueprint[Model],
        description: str = "",
        sampler: Blueprint[Sampler] | None = None,
        filters: Sequence[Blueprint[Filter]] = (),
        objective: Blueprint[Objective] | None = None,
        metrics: Sequence[Blueprint[Metric]] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.model = model
        self.sampler = sampler
        self.filters = filters
        self.objective = objective
        self.metrics = metrics


@dataclass(frozen=True)
class Spec:
    """A spec whose every part was found and whose every value was checked."""

    sections: Sections
    root: Blueprint[Sections]

    @property
    def name(self) -> str:
        return self.sections.name

    def resolve(self) -> dict[str, Any]:
        """The spec with nothing left to defaults and every name qualified."""
        return self.root.resolve()

    def providers(self) -> list[dict[str, Any]]:
        """Who provides each component, one row a component."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for blueprint in self.root.walk():
            entry = blueprint.entry
            if entry:
                rows[entry.kind, entry.reference] = {
                    "kind": entry.kind,
                    "name": entry.name,
                    "version": entry.cls.version,
                    "plugin": entry.plugin,
                    "distribution": entry.distribution,
                    "distribution_version": entry.distribution_version,
                }
        return [rows[key] for key in sorted(rows)]


@dataclass(frozen=True)
class Draft:
    """A spec as far as it could be read, and what is wrong with it."""

    spec: Spec | None
    problems: list[Problem]


def load_spec(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> Spec:
    """The spec, or SpecError with everything that is wrong with it."""
    draft = draft_spec(source, overrides=overrides, registry=registry)
    if draft.problems or draft.spec is None:
        raise SpecError(draft.problems)
    return draft.spec


def draft_spec(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> Draft:
    """The spec as far as it can be read; a spec with only surplus keys still has its parts."""
    registry = registry or default_registry()
    document = document_from_data({})
    fatal: list[Problem] = []
    try:
        document = _load_document(source, registry)
    except SpecError as error:
        fatal += error.problems
    for text in overrides:
        try:
            document = merge(document, parse_override(text, document))
        except SpecError as error:
            fatal += error.problems
    if fatal:
        return Draft(None, fatal)
    reader = SpecReader(document, registry)
    root = reader.part(Sections, document.data)
    if root is None:
        return Draft(None, reader.problems)
    return Draft(Spec(Sections(**root.params), root), reader.problems)


def find_spec(source: str | os.PathLike[str], registry: ComponentRegistry) -> Path:
    """The file a person means by a path or by the name of a shipped spec."""
    path = Path(source)
    looks_like_path = path.suffix in (".yaml", ".yml") or path.name != str(source)
    if looks_like_path or os.path.isfile(path):
        return path
    try:
        return registry.spec(str(source))
    except RegistryError as error:
        if os.path.exists(path):
            return path
        raise SpecError([Problem(f"{error}; nor is there a file of that name")]) from None


def _load_document(source: Source, registry: ComponentRegistry) -> Document:
    if isinstance(source, Mapping):
        return _resolve_extends(document_from_data(dict(source)), Path(), registry, [])
    path = find_spec(source, registry)
    return _resolve_extends(read_file(path), path, registry, [path.resolve()])


def _resolve_extends(
    document: Document, path: Path, registry: ComponentRegistry, seen: list[Path]
) -> Document:
    """The document laid over the one it extends."""
    data = document.data
    if not isinstance(data, dict) or "extends" not in data:
        return document
    place = document.place(("extends",))
    wanted = data.pop("extends")
    if not isinstance(wanted, str):
        raise SpecError([Problem("should name the spec to build on", "extends", place)])
    try:
        beside = path.parent / wanted
        file = beside if os.path.isfile(beside) else find_spec(wanted, registry)
        file = file if file.is_absolute() else path.parent / file
        content = read_file(file)
        if not isinstance(content.data, dict):
            raise SpecError([Problem("should be a mapping, for others to build on it")])
        if file.resolve() in seen or len(seen) >= MAX_EXTENDS:
            chain = " -> ".join(p.name for p in [*seen, file])
            raise SpecError([Problem(f"goes in a circle or too deep: {chain}")])
        base = _resolve_extends(content, file, registry, [*seen, file.resolve()])
    except SpecError as error:
        found = [
            p
            if p.place and (p.place.line, p.place.column) != (1, 1)
            else Problem(f"{wanted}: {p.message}", p.path or "extends", place)
            for p in error.problems
        ]
        raise SpecError([*found, *document.problems]) from None
    return merge(base, document)


def parse_override(text: str, base: Document, example: str = OVERRIDE_EXAMPLE) -> Document:
    """``--set a.b.c=value`` as a document of its own, so that faults in it point at it."""
    key_path, equals, value = text.partition("=")
    keys = key_path.strip().split(".")
    label = truncate(f"--set {text}", 100)
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        message = f"should read KEY.KEY=VALUE, for example {example}"
        raise SpecError([Problem(message, place=Place(label, 1, 1))])
    read = read_text(value, label) if value.strip() else document_from_data(None, label)
    data: Any = read.data
    for key in reversed(keys):
        data = {key: data}
    under = tuple(keys)
    document = document_from_data(data, label)
    document.problems = [
        Problem(p.message, ".".join([*keys, p.path]), p.place) for p in read.problems
    ]
    for depth in range(1, len(keys) + 1):
        if depth == len(keys) or under[:depth] not in base.values:
            document.values[under[:depth]] = document.keys[under[:depth]] = Place(label, 1, 1)
    document.values.update({(*under, *inner): place for inner, place in read.values.items()})
    document.keys.update({(*under, *inner): place for inner, place in read.keys.items()})
    return document


def merge(base: Document, over: Document) -> Document:
    """``over`` laid over ``base``: mappings mix key by key, unless another type is named."""
    values, keys = dict(base.values), dict(base.keys)

    def discard_places(below: Any, key_path: KeyPath) -> None:
        """Forget where the parts of a value stood that is no longer there."""
        if isinstance(below, (dict, list)):
            for table in (values, keys):
                for stale in [t for t in table if t[: len(key_path)] == key_path]:
                    del table[stale]
        if key_path not in over.values and over.values:
            values[key_path] = Place(over.file, 1, 1)

    def merge_values(below: Any, above: Any, key_path: KeyPath) -> Any:
        if not isinstance(above, dict):
            discard_places(below, key_path)
            return above
        if isinstance(below, str):
            below = {"type": below}
            if key_path in values:
                values[*key_path, "type"] = values[key_path]
        if not isinstance(below, dict) or above.get("type", below.get("type")) != below.get("type"):
            discard_places(below, key_path)
            return above
        mixed = dict(below)
        for key, value in above.items():
            mixed[key] = (
                merge_values(below[key], value, (*key_path, key)) if key in below else value
            )
        return mixed

    data = merge_values(base.data, over.data, ())
    return Document(
        data,
        over.file,
        values=values | over.values,
        keys=keys | over.keys,
        problems=[*base.problems, *over.problems],
    )
