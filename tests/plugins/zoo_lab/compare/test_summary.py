"""Differences are compared with the spread of the seeds."""

import math

import pytest
from comparison_kit import make_comparison, make_figure

from zoo_lab.compare.comparison_plot import plot_comparison
from zoo_lab.compare.comparison_result import StudyResult
from zoo_lab.compare.summary import compare, summarise
from zoo_lab.compare.table import table_rows


@pytest.mark.parametrize(
    ("own", "lower", "expected"),
    [
        ([14.0, 16.0], False, "better"),
        ([14.0, 16.0], True, "worse"),
        ([4.0, 6.0], True, "better"),
        ([11.0, 13.0], False, "unclear"),
        ([30.0], False, "unclear"),
    ],
)
def test_a_difference_counts_if_it_exceeds_both_spreads(own, lower, expected):
    assert compare(make_figure(own), make_figure([9.0, 11.0]), lower=lower) == expected


def test_the_best_is_selected_on_the_validation_data():
    comparison = make_comparison({"dot": [9.0, 11.0], "general": [20.0, 22.0], "gat": []})
    comparison.variants["dot"].validation = make_figure([99.0, 99.0])
    (group,) = comparison.groups
    assert list(summarise(comparison, group)) == [
        "Best on the validation data, of those with 2 seeds: `dot`, with test BLEU 10 ± 1.41.",
        "Better than `additive` by more than the spread: `general` (+11).",
        "Within the spread, or with too few seeds: `dot`.",
    ]


def test_runs_that_were_stopped_are_not_compared():
    comparison = make_comparison({"dot": [9.0, 11.0], "general": [90.0, 92.0]})
    comparison.variants["general"].seeds[0].shortened = [
        "training stopped after 5 s, at step 3 of 8"
    ]
    (group,) = comparison.groups
    best, *_, last = summarise(comparison, group)
    assert "seeds: `additive`, with" in best
    assert last == "Stopped by the time limit in one run or more, so not compared: `general`."


def test_a_group_without_runs_has_no_summary():
    comparison = make_comparison({"dot": []}, base=[])
    assert list(summarise(comparison, comparison.groups[0])) == []


def test_values_that_are_not_finite_are_not_the_best_and_are_stored():
    comparison = make_comparison({"dot": [math.nan, 1.0], "general": [math.inf, 2.0]})
    (group,) = comparison.groups
    best, *_ = summarise(comparison, group)
    assert best.startswith("Best on the validation data, of those with 2 seeds: `additive`, with")
    stored = StudyResult.model_validate_json(comparison.model_dump_json())
    assert math.isnan(stored.variants["dot"].quality.mean)
    assert stored.variants["general"].seeds[0].values == {"test/bleu": math.inf}
    assert "not finite" in plot_comparison(stored)
    assert table_rows(stored, group)[1][1] == "nan"
