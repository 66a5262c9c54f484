"""Results of comparisons for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zoo_lab.compare.comparison_result import GroupResult, StudyResult, VariantResult
from zoo_lab.reproduce.result import FigureResult, SeedResult


def make_figure(values: Sequence[float]) -> FigureResult:
    """Return a figure with these values of seeds 0, 1, ..."""
    return FigureResult(
        value="test/bleu",
        label="test BLEU",
        unit="",
        at_least=None,
        at_most=None,
        spread_at_most=None,
        published="",
        by_seed=dict(enumerate(values)),
    )


def make_comparison(
    values: Mapping[str, Sequence[float]], base: Sequence[float] = (9.0, 11.0)
) -> StudyResult:
    """Return a comparison of scorers with `additive`, by the qualities of their seeds."""
    variants = {"baseline": _variant("baseline", base)}
    variants |= {name: _variant(name, found) for name, found in values.items()}
    rows = {"additive": "baseline", **{name: name for name in values}}
    return StudyResult(
        name="small",
        title="A small task",
        description="",
        base="letters",
        settings=[],
        data={},
        quality="test BLEU",
        unit="",
        lower_is_better=False,
        validation="validation bleu",
        validation_lower_is_better=False,
        speed="tokens",
        planned_seeds=[0, 1],
        groups=[GroupResult(name="scorer", title="scorers", rows=rows, excluded={})],
        variants=variants,
    )


def _variant(name: str, values: Sequence[float]) -> VariantResult:
    figure = make_figure(values) if values else None
    seeds = [
        SeedResult(
            seed=seed,
            fingerprint=name,
            command="zoo compare small.yaml",
            commit="0123456789abcdef",
            date="2026-01-02T03:04:05+00:00",
            hardware={"device": "GPU"},
            versions={"torch": "2.11"},
            seconds=50.0,
            steps=100,
            parameters=1_234_567,
            tokens_per_second=25_000.0,
            peak_memory=300_000_000,
            side_by_side=14,
            values={"test/bleu": value},
        )
        for seed, value in enumerate(values)
    ]
    return VariantResult(
        name=name, changes=[], quality=figure, validation=figure, seeds=seeds, errors={}
    )
