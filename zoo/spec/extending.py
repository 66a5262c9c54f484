"""Specs as documents: the specs and models that a spec extends, and overrides."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from zoo.errors import Place, Problem, RegistryError, SpecError, ZooError, ZooWarning
from zoo.files import is_safetensors
from zoo.interfaces import Entry
from zoo.interfaces.signature import Slot, parameters
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import Document, KeyPath, document_from_data, read_file
from zoo.spec.merging import merge, parse_override

Source = str | os.PathLike[str] | Mapping[str, Any] | Document
"""Path of a spec file, name of a spec of a plugin, or the spec as a mapping or a document."""

MAX_EXTENDS = 8
_CATALOGUE = re.compile(r"[\w-]+")
REPOSITORY = re.compile(r"hub:.+|[\w-][\w.-]*/[\w.-]+(@.+)?")
"""The name of a repository on the Hub."""


def merge_source(source: Source, overrides: Iterable[str], registry: ComponentRegistry) -> Document:
    """Read a spec as plain data, merged over the specs it extends, with overrides.

    A spec that extends a model starts its training from the weights of the model, unless it sets
    ``train.start``.

    Raises:
        SpecError: with the problems of the spec and of all overrides.
        ZooError: if the overrides are a text.
    """
    if isinstance(overrides, str):
        raise ZooError(f"overrides is {overrides!r}; expected a list of such texts")
    document = document_from_data({})
    problems: list[Problem] = []
    try:
        document = load_document(source, registry)
    except SpecError as error:
        problems += error.problems
    for text in overrides:
        try:
            override = parse_override(text, document)
            document = merge(_for_type(document, override, registry), override)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    train = document.data.get("train") if isinstance(document.data, dict) else None
    if document.base is not None and isinstance(train, dict) and "start" not in train:
        document.data = {**document.data, "train": {**train, "start": document.base}}
        place = document.place(("extends",))
        document.values |= {("train", "start"): place} if place else {}
    return document


def find_spec(source: str | os.PathLike[str], registry: ComponentRegistry) -> Path:
    """Return the file of a spec given by path or by the name of a plugin's spec."""
    path = Path(source)
    looks_like_path = path.suffix in (".yaml", ".yml") or path.name != str(source)
    if looks_like_path:
        return path
    try:
        found = registry.spec(str(source))
    except RegistryError as error:
        if os.path.exists(path):
            return path
        raise SpecError([Problem(str(error))]) from None
    if os.path.isfile(path):
        warnings.warn(
            f"'{source}' is the spec of a plugin; write ./{source} for the file",
            ZooWarning,
            stacklevel=2,
        )
    return found


def load_document(source: Source, registry: ComponentRegistry) -> Document:
    """Read a spec as plain data, merged over the specs it extends; raise SpecError."""
    if isinstance(source, Document):
        copied = replace(source, data=copy.copy(source.data))
        return _resolve_extends(copied, Path(source.file), registry, [])
    if isinstance(source, Mapping):
        return _resolve_extends(document_from_data(dict(source)), Path(), registry, [])
    path = find_spec(source, registry)
    return _resolve_extends(read_file(path), path, registry, [path.resolve()])


def _resolve_extends(
    document: Document, path: Path, registry: ComponentRegistry, seen: list[Path]
) -> Document:
    """Return the document merged over the one it extends."""
    data = document.data
    if not isinstance(data, dict) or "extends" not in data:
        return document
    place = document.place(("extends",))
    base_name = data.pop("extends")
    if not isinstance(base_name, str):
        message = "should be the name or path of a spec or of a model"
        raise SpecError([Problem(message, "extends", place)])
    try:
        model = _read_model(base_name, path.parent, registry)
        if model is not None:
            return merge(_for_type(model, document, registry), document)
        sibling = path.parent / base_name
        file = sibling if os.path.isfile(sibling) else find_spec(base_name, registry)
        file = file if file.is_absolute() else path.parent / file
        content = read_file(file)
        if not isinstance(content.data, dict):
            raise SpecError([Problem("should be a mapping")])
        if file.resolve() in seen or len(seen) >= MAX_EXTENDS:
            chain = " -> ".join(p.name for p in [*seen, file])
            raise SpecError([Problem(f"is circular or exceeds {MAX_EXTENDS} levels: {chain}")])
        base = _resolve_extends(content, file, registry, [*seen, file.resolve()])
    except SpecError as error:
        problems = [
            p
            if p.place and p.place.line
            else Problem(f"{base_name}: {p.message}", p.path or "extends", place)
            for p in error.problems
        ]
        raise SpecError([*problems, *document.problems]) from None
    return merge(_for_type(base, document, registry), document)


_OF_THE_OUTPUTS = ("sampler", "filters", "metrics", "preprocessing")
"""Sections that depend on the type of a model. A training takes the preprocessing that fits it from
the model with weights."""


def _for_type(base: Document, over: Document, registry: ComponentRegistry) -> Document:
    """Return the spec of a model with weights for the model type that a document sets.

    A model of another type, such as a classifier on the encoder of a language model, has the parts
    in slots that both types have. Other parameters, and the sections that depend on the type, are
    those of the document.
    """
    old, new = (_model_entry(document, registry) for document in (base, over))
    if base.base is None or old is None or new is None:
        return base
    model = {**base.data["model"], "type": over.data["model"]["type"]}
    if old is new:
        return replace(base, data={**base.data, "model": model})
    theirs = _slots(new.cls)
    kept = {key for key, slot in _slots(old.cls).items() if theirs.get(key) == slot}
    model = {key: value for key, value in model.items() if key == "type" or key in kept}
    data = {key: value for key, value in base.data.items() if key not in _OF_THE_OUTPUTS}
    removed = {("model", key) for key in base.data["model"]} - {("model", key) for key in model}
    return replace(
        base,
        data={**data, "model": model},
        values={p: v for p, v in base.values.items() if p[:2] not in removed},
        keys={p: v for p, v in base.keys.items() if p[:2] not in removed},
    )


def _model_entry(document: Document, registry: ComponentRegistry) -> Entry | None:
    """Return the type of the model of a document; None if it sets none, or an unknown one."""
    model = document.data.get("model") if isinstance(document.data, dict) else None
    name = model.get("type") if isinstance(model, dict) else None
    with contextlib.suppress(RegistryError):
        return registry.get("model", name) if isinstance(name, str) else None
    return None


def _slots(cls: type) -> dict[str, Slot]:
    return {each.name: each.slot for each in parameters(cls) if each.slot is not None}


def _read_model(name: str, folder: Path, registry: ComponentRegistry) -> Document | None:
    """Return the spec of a model with weights; None if the name is that of a spec.

    A spec of a plugin takes precedence over a model of the same name. The places of all values
    name the model.
    """
    import zoo  # the rooms that read models are above this one

    found = _find_model(name, folder, registry)
    if found is None:
        return None
    try:
        data = zoo.model_spec(found)
    except RegistryError:  # not listed in a catalogue
        return None
    except SpecError:
        raise
    except ZooError as error:
        raise SpecError([Problem(str(error))]) from None
    places: dict[KeyPath, Place] = dict.fromkeys(_paths(data), Place(found))
    return Document(data, found, values=places, keys=dict(places), base=found)


def _find_model(name: str, folder: Path, registry: ComponentRegistry) -> str | None:
    """Return the name that can be a model: a file or folder, a repository, or a catalogue name."""
    sibling = folder / os.path.expanduser(name)
    if os.path.isdir(sibling):
        return str(sibling)
    if os.path.isfile(sibling):
        with open(sibling, "rb") as file:
            head, size = file.read(9), os.fstat(file.fileno()).st_size
        is_model = is_safetensors(head, size) or sibling.suffix == ".safetensors"
        return str(sibling) if is_model else None
    with contextlib.suppress(RegistryError):
        registry.spec(name)
        return None
    is_name = _CATALOGUE.fullmatch(name) or REPOSITORY.fullmatch(name)
    return name if is_name and not name.endswith((".yaml", ".yml")) else None


def _paths(data: Any, above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of each value."""
    yield above
    items = enumerate(data) if isinstance(data, list) else ()
    for key, value in data.items() if isinstance(data, dict) else items:
        yield from _paths(value, (*above, key))
