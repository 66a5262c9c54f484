"""Reading of recipes; problems are reported with their place, as for specs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zoo.errors import Problem, RegistryError, SpecError
from zoo.evaluation.datasets import find_dataset
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import check_spec
from zoo.spec.document import Document, read_file
from zoo.spec.merging import merge, parse_override
from zoo.spec.reader import SpecReader
from zoo.spec.spec import Spec
from zoo.training.composing import check_started
from zoo_lab.reproduce.data_check import find_missing
from zoo_lab.reproduce.recipe_schema import Recipe

_SETUP = ("name", "data", "tokenizers", "evaluate", "program")
"""The keys that the results of a seed depend on besides the spec."""


@dataclass(frozen=True)
class RecipeFile:
    """A recipe, and its spec as a document.

    Attributes:
        recipe: the recipe.
        spec: the section ``spec``, with the name of the recipe; None if there is none.
        overrides: values of the file that were replaced.
        setup: keys that results depend on besides the spec, such as the evaluation.
        fingerprint: hash of ``setup`` and of the section ``spec``, with the overrides but without
            the content of a spec that it extends.
        plugin: the plugin that provides the recipe; empty for a file of the user.
        source: the recipe as the caller named it.
    """

    recipe: Recipe
    spec: Document | None
    overrides: tuple[str, ...]
    setup: Mapping[str, Any]
    fingerprint: str
    plugin: str
    source: str

    @property
    def name(self) -> str:
        return self.recipe.name


def find_recipe(source: str, registry: ComponentRegistry | None = None) -> Path:
    """Return the file of a recipe given by path or by name; raise RegistryError if there is
    none."""
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return path
    return (registry or default_registry()).recipe(source)


def read_recipe(
    source: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    registry: ComponentRegistry | None = None,
    check: bool = True,
) -> RecipeFile:
    """Read and check a recipe; raise SpecError with all problems found.

    Args:
        source: path of a recipe, or the name of a recipe of a plugin.
        overrides: values that replace those of the file, such as ``spec.train.steps=20``.
        check: whether to check the spec, for which the model is built without weights.
    """
    registry = registry or default_registry()
    try:
        path = find_recipe(os.fspath(source), registry)
    except RegistryError as error:
        raise SpecError([Problem(str(error))]) from None
    document = read_file(path, "a recipe")
    for text in overrides:
        document = merge(document, parse_override(text, document, "spec.train.steps=20"))
    reader = SpecReader(document, registry)
    root = reader.part(Recipe, document.data)
    if root is None or reader.problems:
        raise SpecError(reader.problems)
    recipe: Recipe = root.build()
    spec = _inner_spec(document, recipe.name) if document.data.get("spec") else None
    if spec is not None and check:
        # Without its data, a recipe is checked without the base that its training starts from.
        check_parts = check_spec if find_missing(recipe.data) else check_started
        checked = check_parts(spec, registry=registry)[0]
        _check_evaluations(recipe, checked, document, registry)
    owner = registry.owner_of(str(path))
    setup = {key: document.data.get(key) for key in _SETUP}
    return RecipeFile(
        recipe,
        spec,
        tuple(overrides),
        setup,
        fingerprint({**setup, "spec": document.data.get("spec")}),
        owner.name if owner else "",
        os.fspath(source),
    )


def _inner_spec(document: Document, name: str) -> Document:
    """Return the section ``spec`` as a document, with the name of the recipe."""
    values, keys = (
        {path[1:]: place for path, place in table.items() if path[:1] == ("spec",)}
        for table in (document.values, document.keys)
    )
    return Document({"zoo": 1, **document.data["spec"], "name": name}, document.file, values, keys)


def _check_evaluations(
    recipe: Recipe, spec: Spec, document: Document, registry: ComponentRegistry
) -> None:
    """Raise SpecError if an evaluation has no data, or parameters that its dataset does not
    take."""
    train = spec.resolve().get("train")
    problems = []
    if train is None:
        problems.append(Problem("has no section 'train'", "spec", document.place(("spec",))))
    for name, evaluation in recipe.evaluate.items() if train else ():
        for params in list(evaluation.each.values()) or [{}]:
            try:
                find_dataset(train or {}, evaluation.part, {**evaluation.data, **params}, registry)
            except SpecError as error:
                place = document.place(("evaluate", name))
                problems += [replace(problem, place=place) for problem in error.problems]
    if problems:
        raise SpecError(problems)


def fingerprint(content: Any) -> str:
    """Return a short hash of a value of JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
