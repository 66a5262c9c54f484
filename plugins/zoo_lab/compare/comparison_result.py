"""The results of a study, as they are written to JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from zoo.errors import ZooError
from zoo.interfaces import Metric
from zoo.interfaces.metric import is_lower_better
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.spec import load_spec
from zoo_lab.compare.base import first_monitored
from zoo_lab.compare.study_file import BASELINE, StudyPlan
from zoo_lab.compare.variant_run import read_run, run_folder
from zoo_lab.reproduce.recipe_schema import Figure
from zoo_lab.reproduce.result import FigureResult, Record, SeedResult, collect_figures


class VariantResult(Record):
    """The results of a variant.

    Attributes:
        changes: overrides of the base's spec.
        quality: the first figure of the recipe; None if no seed has it.
        validation: the value that selects the checkpoint; of several the first.
        metrics: if the quality is that value, the other values on the validation data.
        seeds: the runs.
        errors: the errors of runs that failed, by seed.
    """

    name: str
    changes: list[str]
    quality: FigureResult | None
    validation: FigureResult | None
    metrics: list[FigureResult] = Field(default=[])
    seeds: list[SeedResult]
    errors: dict[int, str]

    @property
    def stopped(self) -> int:
        """Number of runs that a limit stopped."""
        return sum(bool(seed.shortened) for seed in self.seeds)

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


class GroupResult(Record):
    """The variants of a group: their names by label, the base first; and what is excluded."""

    name: str
    title: str
    rows: dict[str, str]
    excluded: dict[str, str] = Field(alias="left_out")


class StudyResult(Record):
    """The results of a study.

    Attributes:
        base: the recipe or spec.
        settings: overrides of the base that all variants have.
        data: checksums of the files, by path.
        quality: label and unit of the quality.
        lower_is_better: whether lower values of the quality are better.
        speed: what the speed of the training counts.
        planned_seeds: the seeds of the study, ``seeds_asked`` in JSON.
        examples: number of examples that were evaluated; None: all.
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
    speed: str
    planned_seeds: list[int] = Field(alias="seeds_asked")
    examples: int | None = None
    groups: list[GroupResult]
    variants: dict[str, VariantResult]

    @property
    def metrics(self) -> list[str]:
        """The labels of further values on the validation data."""
        found = [each.label for variant in self.variants.values() for each in variant.metrics]
        return list(dict.fromkeys(found))

    @property
    def baseline(self) -> VariantResult:
        return self.variants[BASELINE]


def read_comparison(output: Path, name: str) -> StudyResult | None:
    """Return the results in ``output/NAME.json``; None if there is no file.

    Raises:
        ZooError: if the file is not a comparison.
    """
    path = output / f"{name}.json"
    if not path.is_file():
        return None
    try:
        return StudyResult.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"])
        raise ZooError(
            f"{path} is not a result of 'zoo compare': {where}: {first['msg'].lower()}; "
            "remove the file, or use another folder with -o"
        ) from None


Runs = dict[tuple[str, int], SeedResult]
"""Results by fingerprint and seed."""


def read_runs(plan: StudyPlan, output: Path) -> tuple[Runs, dict[tuple[str, int], str]]:
    """Return the results of the runs of a study, and the errors of those that failed.

    They are in the folders of the runs, or in the results of all runs, ``NAME.json``.
    """
    stored = read_comparison(output, plan.name)
    runs: Runs = {
        (seed.fingerprint, seed.seed): seed
        for variant in (stored.variants.values() if stored else ())
        for seed in variant.seeds
    }
    errors = {}
    for variant in plan.variants.values():
        for seed in plan.seeds:
            folder = run_folder(output / plan.name, variant.name, variant.recipe, seed)
            result, error = read_run(folder)
            if result is not None:
                runs[result.fingerprint, seed] = result
            elif error is not None:
                errors[variant.recipe.fingerprint, seed] = error
    return runs, errors


def collect_results(
    plan: StudyPlan, output: Path, data: dict[str, str], registry: ComponentRegistry | None = None
) -> StudyResult:
    """Return the results of all runs of a study in a folder."""
    registry = registry or default_registry()
    target = plan.base.recipe.figures[0]
    quality = _make_figure(target.value, target.label, target.unit)
    assert plan.base.spec is not None
    resolved = load_spec(plan.base.spec, registry=registry).resolve()
    monitor = first_monitored(resolved)
    same_metric = quality.value.rpartition("/")[2] == monitor
    name = (target.metric_label if same_metric else None) or monitor
    unit = quality.unit if same_metric else ""
    validation = _make_figure(f"validation/{monitor}", f"validation {name}", unit)
    own_quality = quality.value == validation.value
    mode = (resolved["train"].get("evaluate") or {}).get("mode")
    lower = _is_lower_better(validation, registry) if mode is None else mode == "min"
    runs, errors = read_runs(plan, output)
    variants = {}
    for name, variant in plan.variants.items():
        keys = [(variant.recipe.fingerprint, seed) for seed in plan.seeds]
        seeds = [runs[key] for key in keys if key in runs]
        variants[name] = VariantResult(
            name=name,
            changes=list(variant.changes),
            quality=_figure(quality, seeds),
            validation=_figure(validation, seeds),
            metrics=_validation_metrics(seeds, monitor) if own_quality else [],
            seeds=seeds,
            errors={key[1]: errors[key] for key in keys if key in errors and key not in runs},
        )
    return StudyResult(
        name=plan.name,
        title=plan.study.title,
        description=plan.study.description,
        base=plan.study.base,
        settings=list(plan.base.overrides),
        data=data,
        quality=quality.label,
        unit=quality.unit,
        lower_is_better=_is_lower_better(target, registry),
        validation=validation.label,
        validation_lower_is_better=lower,
        speed=plan.study.speed,
        planned_seeds=list(plan.seeds),
        examples=plan.examples,
        groups=[
            GroupResult(
                name=name, title=group.title, rows=plan.groups[name], excluded=group.left_out
            )
            for name, group in plan.study.groups.items()
        ],
        variants=variants,
    )


def _is_lower_better(figure: Figure, registry: ComponentRegistry) -> bool:
    """Return whether lower values of a figure are better: by its unit, its target, its metric."""
    if figure.unit == "% error" or figure.at_most is not None:
        return True
    metrics = [entry.cls for entry in registry.components(Metric.kind)]
    name = figure.value.rpartition("/")[2]
    return is_lower_better(name, [cls for cls in metrics if issubclass(cls, Metric)])


def _make_figure(value: str, label: str, unit: str) -> Figure:
    """Return a figure without a target."""
    figure: Figure = Blueprint.of(Figure, value=value, label=label, unit=unit).build()
    return figure


def _validation_metrics(seeds: Sequence[SeedResult], monitor: str) -> list[FigureResult]:
    """Return the values on the validation data other than the monitored one."""
    names = [n.removeprefix("validation/") for s in seeds for n in s.values if "validation/" in n]
    others = [name for name in dict.fromkeys(names) if name != monitor]
    figures = [_make_figure(f"validation/{name}", f"validation {name}", "") for name in others]
    return collect_figures(figures, seeds)


def _figure(figure: Figure, seeds: Sequence[SeedResult]) -> FigureResult | None:
    return next(iter(collect_figures([figure], seeds)), None)
