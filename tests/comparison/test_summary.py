"""Differences are compared with the spread of the seeds."""

import pytest
from comparison_kit import make_comparison, make_figure

from zoo.comparison.summary import compare, summarise


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
        "Best on the validation data: dot, with test BLEU 10 ± 1.41.",
        "Better than additive by more than the spread: general (+11).",
        "Within the spread, or with too few seeds: dot.",
    ]


def test_a_group_without_runs_has_no_summary():
    comparison = make_comparison({"dot": []}, base=[])
    assert list(summarise(comparison, comparison.groups[0])) == []
