"""Comparison of arrays: the tolerance is relative to the largest value of the original."""

from pathlib import Path

import pytest
import torch

from zoo_exchange.check_result import CheckResult
from zoo_exchange.output_arrays import compare_arrays


def result(actual, expected):
    comparison = compare_arrays(
        Path("check.npz"), "a", "a", torch.tensor(actual), torch.tensor(expected)
    )
    return CheckResult("check.npz", "", 1e-4, [comparison])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_tolerance_scales_with_the_values(scale):
    expected = [2 * scale, -5 * scale, 0.0]
    assert not result([2 * scale, -5 * scale, 4e-4 * scale], expected).failures
    (failure,) = result([2 * scale, -5 * scale, 6e-4 * scale], expected).failures
    assert failure.relative == pytest.approx(1.2e-4, rel=1e-3)
    assert failure.difference == pytest.approx(6e-4 * scale, rel=1e-3)


def test_zeros_are_compared_absolutely_and_equal_infinities_agree():
    assert not result([0.0, 5e-5], [0.0, 0.0]).failures
    assert result([0.0, 5e-4], [0.0, 0.0]).failures
    assert not result([float("-inf"), 1.0], [float("-inf"), 1.0]).failures
    assert result([float("-inf"), 1.0], [-3.0, 1.0]).failures


def test_the_message_and_the_provenance_have_both_differences():
    failed = result([10.0, 11.0], [10.0, 20.0])
    assert "differs from the original by 9, 4.5e-01 of the largest value 20" in failed.message()
    assert failed.as_json()["max_difference"] == 9.0
    assert failed.as_json()["max_relative_difference"] == 0.45
