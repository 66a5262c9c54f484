"""Reading of studies, and of the options of ``zoo compare`` as a study."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoo.errors import Place, Problem, SpecError
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import read_file
from zoo.spec.reader import SpecReader
from zoo.spec.spec import load_spec
from zoo_lab.compare.base import change_recipe, read_base
from zoo_lab.compare.study_schema import Changes, Group, Study, StudyHeading
from zoo_lab.compare.swap import as_change, describe_value, find_path, is_current, short_names
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.recipe_schema import FORMAT

BASELINE = "baseline"


@dataclass(frozen=True)
class Variant:
    """A variant of the base.

    Attributes:
        name: unique in its study, and a valid name of a folder.
        changes: overrides of the base's spec; none for the base.
        recipe: the recipe with the changes.
    """

    name: str
    changes: tuple[str, ...]
    recipe: RecipeFile


@dataclass(frozen=True)
class StudyPlan:
    """A study with its variants.

    Attributes:
        variants: by name; the base is the first.
        groups: the variants of each group by their labels; the base is the first of each.
        max_seconds: seconds of training of each run.
        examples: evaluate on the first examples only, this many.
    """

    study: Study
    base: RecipeFile
    seeds: tuple[int, ...]
    max_seconds: float | None
    examples: int | None
    variants: dict[str, Variant] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.study.name


@dataclass(frozen=True)
class StudySettings:
    """What the command line changes in a study.

    Attributes:
        overrides: overrides of the spec, such as ``train.steps=100``.
        seeds: default: those of the study.
        max_seconds: default: that of the study.
        examples: evaluate on the first examples only, this many.
    """

    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] | None = None
    max_seconds: float | None = None
    examples: int | None = None


def is_study(source: str) -> bool:
    """Return whether a file is a study; specs and recipes have no key ``base``."""
    if Path(source).suffix not in (".yaml", ".yml"):
        return False
    data = read_file(source).data
    return isinstance(data, dict) and "base" in data


def read_study(
    source: str, settings: StudySettings, registry: ComponentRegistry | None = None
) -> StudyPlan:
    """Read a study file; raise SpecError with the problems found."""
    registry = registry or default_registry()
    document = read_file(source, "a study")
    reader = SpecReader(document, registry)
    root = reader.part(Study, document.data)
    if root is None or reader.problems:
        raise SpecError(reader.problems)
    study: Study = root.build()
    beside = Path(source).parent / study.base
    if beside.is_file():
        study.base = str(beside)
    return _plan(study, settings, registry, lambda keys: document.key(("groups", *keys)))


def make_study(
    source: str,
    swaps: Sequence[tuple[str, list[Any]]],
    settings: StudySettings,
    *,
    product: bool = False,
    registry: ComponentRegistry | None = None,
) -> StudyPlan:
    """Return the study of ``zoo compare SPEC --swap ...``: a group for each path, or their
    product."""
    registry = registry or default_registry()
    names = short_names([path for path, _ in swaps])
    groups = (
        {"product": Group(swap=dict(swaps), product=True)}
        if product
        else {names[path]: Group(swap={path: values}) for path, values in swaps}
    )
    base = read_base(source, settings=settings.overrides, registry=registry)
    heading = StudyHeading(zoo=FORMAT, name=base.name, title=base.recipe.description)
    study = Study(heading=heading, base=source, groups={})
    study.groups = groups
    return _plan(study, settings, registry, lambda keys: Place(f"--swap {keys[-1]}"))


def _plan(
    study: Study,
    settings: StudySettings,
    registry: ComponentRegistry,
    find_place: Callable[[Sequence[str]], Place | None],
) -> StudyPlan:
    fixed = [f"{path}={json.dumps(value)}" for path, value in study.set.items()]
    replaced = {"evaluate": study.evaluate, "figures": study.figures}
    base = read_base(
        study.base,
        settings=[*fixed, *settings.overrides],
        recipe_settings=[f"{k}={json.dumps(v)}" for k, v in replaced.items() if v is not None],
        registry=registry,
    )
    assert base.spec is not None
    resolved = load_spec(base.spec, registry=registry).resolve()
    max_seconds = study.limit if settings.max_seconds is None else settings.max_seconds
    seeds = tuple(study.seeds) if settings.seeds is None else settings.seeds
    plan = StudyPlan(study, base, seeds, max_seconds, settings.examples)
    _add(plan, Variant(BASELINE, (), change_recipe(base, (), settings.examples)))
    for name, group in study.groups.items():
        rows = plan.groups.setdefault(name, {_baseline_label(group, resolved): BASELINE})
        for label, changes in _list_variants(group):
            where = (name, "variants", label) if label in group.variants else (name, "swap")
            paths = [find_path(path, resolved, find_place((*where, path))) for path in changes]
            texts = tuple(
                as_change(path, value, resolved)
                for path, value in zip(paths, changes.values(), strict=True)
                if not is_current(path, value, resolved)
            )
            recipe = change_recipe(base, texts, settings.examples)
            added = _add(plan, Variant(_slug(f"{name}-{label}"), texts, recipe))
            if added != BASELINE:
                rows[label] = added
    return plan


def _list_variants(group: Group) -> list[tuple[str, Changes]]:
    """Return labels and changes of the variants of a group."""
    names = short_names(list(group.swap))
    found: list[tuple[str, Changes]] = []
    if group.product:
        for combination in itertools.product(*group.swap.values()):
            chosen = dict(zip(group.swap, combination, strict=True))
            label = ", ".join(f"{names[k]} {describe_value(v)}" for k, v in chosen.items())
            found.append((label, chosen))
    else:
        for path, values in group.swap.items():
            several = len(group.swap) > 1
            for value in values:
                label = describe_value(value)
                found.append((f"{names[path]} {label}" if several else label, {path: value}))
    return [*found, *group.variants.items()]


def _add(plan: StudyPlan, variant: Variant) -> str:
    """Add a variant, and return its name, or that of the same variant if there is one."""
    for known in plan.variants.values():
        if known.recipe.fingerprint == variant.recipe.fingerprint:
            return known.name
    if variant.name in plan.variants:
        raise SpecError([Problem(f"two variants of study '{plan.name}' are named {variant.name}")])
    plan.variants[variant.name] = variant
    return variant.name


def _baseline_label(group: Group, resolved: Mapping[str, Any]) -> str:
    """Return the base's label: that of the group, or its value of the only swapped path."""
    if group.baseline != BASELINE or len(group.swap) != 1:
        return group.baseline
    (path,) = group.swap
    current: Any = {**resolved["model"], **resolved}
    for key in path.split("."):
        if not isinstance(current, Mapping) or key not in current:
            return BASELINE
        current = current[key]
    if isinstance(current, Mapping) and "type" in current:
        current = str(current["type"]).rpartition(":")[2]
    return f"{describe_value(current)} ({BASELINE})"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
