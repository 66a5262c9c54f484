"""The results of a reproduction, as they are written to JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, computed_field

from zoo_lab.reproduce.recipe_schema import Figure


class Record(BaseModel):
    """Base class of results; NaN and infinite values are strings in JSON, which has no others."""

    model_config = ConfigDict(
        ser_json_inf_nan="strings", populate_by_name=True, serialize_by_alias=True
    )


class SeedResult(Record):
    """The results of one seed.

    Attributes:
        fingerprint: that of the recipe.
        overrides: values of the recipe that were replaced.
        command, commit, date, hardware, versions: how and where it was computed.
        seconds: time of training, evaluation and programs together.
        training_seconds: time of training.
        steps: number of updates of the weights.
        parameters: number of parameters of the model.
        tokens_per_second: median speed of the training, after its first log line.
        peak_memory: largest number of bytes allocated on the GPU while training.
        side_by_side: number of runs that shared the machine.
        values: all values, such as ``test/bleu``.
        signatures: the signatures of the metrics, by evaluation and metric.
        curve: loss and validation results by step.
        shortened: what was cut short, ``cut`` in JSON.
    """

    seed: int
    fingerprint: str
    overrides: list[str] = []
    command: str
    commit: str | None
    date: str
    hardware: dict[str, str | int]
    versions: dict[str, str]
    seconds: float
    training_seconds: float | None = None
    steps: int | None = None
    parameters: int | None = None
    tokens_per_second: float | None = None
    peak_memory: int | None = None
    side_by_side: int = 1
    values: dict[str, float]
    signatures: dict[str, str] = {}
    curve: list[dict[str, float]] = []
    shortened: list[str] = Field(default=[], alias="cut")

    def is_final(self, max_seconds: float | None, examples: int | None) -> bool:
        """Return whether a run with these limits need not be repeated: no other limit cut it short.

        Args:
            max_seconds: seconds of training.
            examples: number of examples that are evaluated.
        """
        allowed = [] if max_seconds is None else [stopped_by_time(max_seconds)]
        allowed += [] if examples is None else [shortened_to_examples(examples)]
        return all(text.startswith(tuple(allowed)) for text in self.shortened)


def stopped_by_time(max_seconds: float) -> str:
    """Return the first words of the entry in `SeedResult.shortened` of a time limit."""
    return f"training stopped after {max_seconds:.12g} s,"


def shortened_to_examples(examples: int) -> str:
    """Return the entry in `SeedResult.shortened` of an evaluation on the first examples."""
    return f"evaluated on the first {examples:,} examples"


class FigureResult(Record):
    """A figure over the seeds, in its unit."""

    value: str
    label: str
    metric_label: str | None = None
    unit: str
    at_least: float | None
    at_most: float | None
    spread_at_most: float | None
    published: str
    by_seed: dict[int, float]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.by_seed.values())

    @computed_field  # type: ignore[prop-decorator]
    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds; None for one seed, or if it is not finite."""
        values = list(self.by_seed.values())
        finite = all(map(math.isfinite, values))
        return statistics.stdev(values) if finite and len(values) > 1 else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reached(self) -> bool | None:
        """Whether mean and spread reach the targets; None if there is no target."""
        checks = []
        if self.at_least is not None:
            checks.append(self.mean >= self.at_least)
        if self.at_most is not None:
            checks.append(self.mean <= self.at_most)
        if self.spread_at_most is not None and self.spread is not None:
            checks.append(self.spread <= self.spread_at_most)
        return all(checks) if checks else None


class Reproduction(Record):
    """The results of a recipe.

    Attributes:
        planned_seeds: the seeds of the recipe, ``seeds_asked`` in JSON.
        data: checksums of the files, by path.
        seeds: the results of the seeds that were run.
    """

    name: str
    plugin: str
    description: str
    paper: str
    data: dict[str, str]
    differences: list[str]
    planned_seeds: list[int] = Field(alias="seeds_asked")
    figures: list[FigureResult]
    seeds: list[SeedResult]

    @property
    def shortened(self) -> list[str]:
        """What was cut short, of all seeds."""
        found = [text for seed in self.seeds for text in seed.shortened]
        missing = len(set(self.planned_seeds) - {seed.seed for seed in self.seeds})
        if missing:
            found.append(f"{missing} of {len(self.planned_seeds)} seeds not run")
        return list(dict.fromkeys(found))


def collect_figures(figures: Sequence[Figure], seeds: Sequence[SeedResult]) -> list[FigureResult]:
    """Return the figures of a recipe from the values of its seeds."""
    found = []
    for figure in figures:
        by_seed = {
            result.seed: convert_unit(result.values[figure.value], figure.unit)
            for result in seeds
            if figure.value in result.values
        }
        if by_seed:
            found.append(FigureResult(by_seed=by_seed, **_fields(figure)))
    return found


def convert_unit(value: float, unit: str) -> float:
    """Return a value in the unit of a figure."""
    return {"": value, "%": 100 * value, "% error": 100 * (1 - value)}[unit]


def _fields(figure: Figure) -> dict[str, Any]:
    names = ("value", "label", "metric_label", "unit", "at_least", "at_most", "spread_at_most")
    return {name: getattr(figure, name) for name in (*names, "published")}
