"""What the atlas states: lessons, each with the comparisons that it rests on."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from zoo_lab.compare.comparison_result import StudyResult
from zoo_lab.compare.summary import compare
from zoo_lab.reproduce.figures import format_figure, format_number
from zoo_lab.reproduce.markdown import markdown_table
from zoo_lab.reproduce.result import FigureResult

FILE = Path(__file__).with_suffix(".toml")
COLUMNS = ("task", "better", "worse", "difference", "spreads together")
HEADING = """## What was learned

A lesson is listed if all its differences are larger than the spreads of both rows together, on the
test data and on the validation data. The tables show the test data. A difference within the spreads
is no evidence that two variants are equally good, so there is no lesson about equal variants."""


class Comparison(BaseModel):
    """Two variants of a study, of which one is better."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    better: str
    worse: str

    def is_supported(self, results: Mapping[str, StudyResult]) -> bool:
        """Return whether the variant is better by more than the spreads of both together, on the
        test data and on the validation data, in runs that no limit stopped."""
        study = results[self.study]
        own, other = study.variants[self.better], study.variants[self.worse]
        if own.stopped or other.stopped:
            return False
        sides = (
            (own.quality, other.quality, study.lower_is_better),
            (own.validation, other.validation, study.validation_lower_is_better),
        )
        return all(_is_better(*side) for side in sides)

    def cells(self, results: Mapping[str, StudyResult]) -> tuple[str, ...]:
        """Return the row of a table: both variants with their quality, and the difference."""
        study = results[self.study]
        own, other = (study.variants[name].quality for name in (self.better, self.worse))
        assert own is not None
        assert other is not None
        assert own.spread is not None
        assert other.spread is not None
        labels = self._labels(study)
        return (
            f"{study.name}, {study.quality}",
            f"{labels[0]}: {format_figure(own)}",
            f"{labels[1]}: {format_figure(other)}",
            format_number(abs(own.mean - other.mean)),
            format_number(own.spread + other.spread),
        )

    def _labels(self, study: StudyResult) -> tuple[str, str]:
        """Return the labels of the variants in the group that has both."""
        for group in study.groups:
            labels = {name: label for label, name in group.rows.items()}
            if {self.better, self.worse} <= set(labels):
                return labels[self.better], labels[self.worse]
        raise ValueError(f"no group of {study.name} has {self.better} and {self.worse}")


class Lesson(BaseModel):
    """A statement, and the comparisons that it rests on.

    Attributes:
        title: the statement.
        text: what its terms mean; no figures of the study.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    text: str = ""
    comparisons: tuple[Comparison, ...] = Field(min_length=1)

    def is_supported(self, results: Mapping[str, StudyResult]) -> bool:
        """Return whether all its comparisons are supported."""
        return all(each.is_supported(results) for each in self.comparisons)


def read_lessons(file: Path = FILE) -> list[Lesson]:
    """Return the lessons of the file."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["lessons"]
    return [Lesson.model_validate(row) for row in rows]


def render_lessons(lessons: Sequence[Lesson], results: Mapping[str, StudyResult]) -> Iterator[str]:
    """Yield the lines of the supported lessons, with the figures of their comparisons."""
    supported = [lesson for lesson in lessons if lesson.is_supported(results)]
    if not supported:
        return
    yield from (HEADING, "")
    for lesson in supported:
        yield f"**{lesson.title}**{' ' * bool(lesson.text)}{lesson.text}"
        yield ""
        yield from markdown_table(COLUMNS, [each.cells(results) for each in lesson.comparisons])
        yield ""


def _is_better(own: FigureResult | None, other: FigureResult | None, lower: bool) -> bool:
    return own is not None and other is not None and compare(own, other, lower=lower) == "better"
