"""The spec that variants are made of, as a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zoo.errors import Problem, SpecError, suggest
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import Document, read_file
from zoo.spec.extending import load_document
from zoo.spec.merging import merge, parse_override
from zoo.spec.spec import load_spec
from zoo_lab.reproduce.recipe_file import RecipeFile, fingerprint, read_recipe
from zoo_lab.reproduce.recipe_schema import FORMAT, Figure, Recipe, RecipeHeading


def read_base(
    source: str,
    *,
    settings: Sequence[str] = (),
    recipe_settings: Sequence[str] = (),
    registry: ComponentRegistry,
) -> RecipeFile:
    """Return a recipe, or a spec as a recipe whose figure is its result on the validation data.

    Args:
        source: name or path of a recipe or a spec; a recipe is preferred.
        settings: overrides of the spec.
        recipe_settings: overrides of other keys of the recipe.

    Raises:
        SpecError: if it is not valid, or has no section 'train'.
    """
    if is_recipe(source, registry):
        recipe = read_recipe(source, overrides=recipe_settings, registry=registry, check=False)
        if recipe.spec is None:
            raise SpecError([Problem(f"recipe '{source}' has no spec, so nothing can be swapped")])
        document = _override(load_document(recipe.spec, registry), settings, "--set")
        _require_training(document, source)
    else:
        _require_known(source, registry)
        document = _override(load_document(source, registry), settings, "--set")
        _require_training(document, source)
        recipe = _as_recipe(document, source, registry)
    return replace(recipe, spec=document, overrides=(*recipe_settings, *settings), source=source)


def is_recipe(source: str, registry: ComponentRegistry) -> bool:
    """Return whether the source is the name or the file of a recipe."""
    if source in registry.recipes:
        return True
    if not Path(source).is_file():
        return False
    data = read_file(source).data
    return isinstance(data, dict) and "figures" in data


def change_recipe(base: RecipeFile, changes: Sequence[str], examples: int | None) -> RecipeFile:
    """Return the recipe with changes of its spec, and the fingerprint of its results.

    Args:
        examples: number of examples that are evaluated; None: all.
    """
    assert base.spec is not None
    spec = _override(base.spec, changes, "--swap")
    overrides = (*base.overrides, *changes)
    digest = fingerprint([base.setup, spec.data, examples])
    return replace(base, spec=spec, overrides=overrides, fingerprint=digest)


def first_monitored(resolved: Mapping[str, Any]) -> str:
    """Return the value that selects the checkpoint in a resolved spec; of several the first."""
    monitor = (resolved["train"].get("evaluate") or {}).get("monitor", "loss")
    return monitor if isinstance(monitor, str) else str(monitor[0])


def _override(document: Document, texts: Sequence[str], option: str) -> Document:
    for text in texts:
        document = merge(document, parse_override(text, document, option=option))
    return document


def _require_known(source: str, registry: ComponentRegistry) -> None:
    """Raise SpecError for the name of a spec or recipe that does not exist."""
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.exists() or source in registry.specs:
        return
    known = [*registry.recipes, *registry.specs]
    tail = suggest(source, known, list_command="zoo reproduce --list")
    raise SpecError([Problem(f"no recipe, spec or file named '{source}'{tail}")])


def _require_training(document: Document, source: str) -> None:
    if not document.data.get("train"):
        message = f"'{source}' has no section 'train'; add one, or use a recipe"
        raise SpecError([Problem(message, "train")])


def _as_recipe(document: Document, source: str, registry: ComponentRegistry) -> RecipeFile:
    spec = load_spec(document, registry=registry)
    monitor = first_monitored(spec.resolve())
    recipe = Recipe(
        heading=RecipeHeading(
            zoo=FORMAT,
            name=re.sub(r"[^a-z0-9.-]", "-", spec.name.lower()),
            description=spec.sections.description,
            paper="",
        ),
        figures=[
            Blueprint.of(Figure, value=f"validation/{monitor}", label=f"validation {monitor}")
        ],
        spec=document.data,
    )
    return RecipeFile(recipe, document, (), {}, "", "", source)
