"""The results of a study, as they are written to JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from zoo.comparison.study_file import BASELINE, Plan
from zoo.comparison.variant_run import read_variant
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.reproduction.recipe_run import write_text
from zoo.reproduction.recipe_schema import Figure
from zoo.reproduction.result import FigureResult, SeedResult, collect_figures
from zoo.spec.spec import load_spec


class VariantResult(BaseModel):
    """The results of a variant.

    Attributes:
        changes: overrides of the base's spec.
        quality: the first figure of the recipe; None if no seed has it.
        validation: the value that selects the checkpoint.
        seeds: the runs.
        errors: the errors of runs that failed, by seed.
    """

    name: str
    changes: list[str]
    quality: FigureResult | None
    validation: FigureResult | None
    seeds: list[SeedResult]
    errors: dict[int, str]

    @property
    def parameters(self) -> int | None:
        return next((s.parameters for s in self.seeds if s.parameters is not None), None)

    @property
    def tokens_per_second(self) -> float | None:
        """The median over the seeds."""
        found = [s.tokens_per_second for s in self.seeds if s.tokens_per_second is not None]
        return statistics.median(found) if found else None

    @property
    def peak_memory(self) -> int | None:
        """The maximum over the seeds, in bytes."""
        return max((s.peak_memory for s in self.seeds if s.peak_memory is not None), default=None)


class GroupResult(BaseModel):
    """The variants of a group: their names by label, the base first."""

    name: str
    title: str
    rows: dict[str, str]
    left_out: dict[str, str]


class Comparison(BaseModel):
    """The results of a study.

    Attributes:
        base: the recipe or spec.
        settings: overrides of the base that all variants have.
        data: checksums of the files, by path.
        quality: label and unit of the quality.
        lower_is_better: whether lower values of the quality are better.
        seeds_asked: the seeds of the study.
    """

    name: str
    title: str
    description: str
    base: str
    settings: list[str]
    data: dict[str, str]
    quality: str
    unit: str
    lower_is_better: bool
    validation: str
    validation_lower_is_better: bool
    seeds_asked: list[int]
    groups: list[GroupResult]
    variants: dict[str, VariantResult]

    @property
    def baseline(self) -> VariantResult:
        return self.variants[BASELINE]


def collect_results(
    plan: Plan, output: Path, data: dict[str, str], registry: ComponentRegistry | None = None
) -> Comparison:
    """Return the results of all runs of a study in a folder, and write them to ``NAME.json``."""
    registry = registry or default_registry()
    target = plan.base.recipe.figures[0]
    quality = _make_figure(target.value, target.label, target.unit)
    assert plan.base.spec is not None
    resolved = load_spec(plan.base.spec, registry=registry).resolve()
    evaluation = resolved["train"].get("evaluate") or {}
    monitor = evaluation.get("monitor", "loss")
    unit = quality.unit if quality.value.rpartition("/")[2] == monitor else ""
    validation = _make_figure(f"validation/{monitor}", f"validation {monitor}", unit)
    mode = evaluation.get("mode")
    lower = is_lower_better(validation, registry) if mode is None else mode == "min"
    variants = {}
    for name, variant in plan.variants.items():
        seeds, errors = read_variant(plan, variant, output / plan.name)
        variants[name] = VariantResult(
            name=name,
            changes=list(variant.changes),
            quality=_figure(quality, seeds),
            validation=_figure(validation, seeds),
            seeds=seeds,
            errors=errors,
        )
    comparison = Comparison(
        name=plan.name,
        title=plan.study.title,
        description=plan.study.description,
        base=plan.study.base,
        settings=list(plan.base.overrides),
        data=data,
        quality=quality.label,
        unit=quality.unit,
        lower_is_better=is_lower_better(target, registry),
        validation=validation.label,
        validation_lower_is_better=lower,
        seeds_asked=list(plan.seeds),
        groups=[
            GroupResult(name=name, title=group.title, rows=plan.groups[name], left_out=group.left_out)
            for name, group in plan.study.groups.items()
        ],
        variants=variants,
    )
    write_text(output / f"{plan.name}.json", comparison.model_dump_json(indent=1))
    return comparison


def is_lower_better(figure: Figure, registry: ComponentRegistry) -> bool:
    """Return whether lower values of a figure are better: by its unit, its target, its metric."""
    if figure.unit == "% error" or figure.at_most is not None:
        return True
    name = figure.value.rpartition("/")[2]
    return name == "loss" or any(
        entry.cls.lower_is_better  # type: ignore[attr-defined]
        for entry in registry.components("metric")
        if name == entry.name or name.startswith((f"{entry.name}_", f"{entry.name}-"))
    )


def _make_figure(value: str, label: str, unit: str) -> Figure:
    """Return a figure without a target."""
    figure: Figure = Blueprint.of(Figure, value=value, label=label, unit=unit).build()
    return figure


def _figure(figure: Figure, seeds: Sequence[SeedResult]) -> FigureResult | None:
    return next(iter(collect_figures([figure], seeds)), None)
