from importlib.metadata import version

import pytest

from zoo_metrics.wer import WER


def test_known_value(score):
    # One deletion, one substitution and two insertions; the references have 4 + 3 words.
    value = score(WER(), ["the cat sat", "a x c d e"], [["the red cat sat"], ["a b c"]])

    assert value == pytest.approx((1 + 1 + 2) / 7, abs=1e-12)


def test_the_reference_with_the_lowest_rate_is_used(score):
    # 1 edit in 2 words, or 2 edits in 5: the second has the lower rate.
    assert score(WER(), ["a b c"], [["a b", "x a b c y"]]) == pytest.approx(2 / 5, abs=1e-12)


def test_of_equal_rates_the_first_reference_is_used(score):
    # 1 edit in 2 words, 2 edits in 4; then one more pair of 3 words without an edit.
    first = score(WER(), ["a x", "c d e"], [["a b", "a x y z"], ["c d e"]])
    second = score(WER(), ["a x", "c d e"], [["a x y z", "a b"], ["c d e"]])

    assert (first, second) == (pytest.approx(1 / 5), pytest.approx(2 / 7))


def test_case_is_significant_by_default(score):
    assert score(WER(), ["A b"], [["a b"]]) == 1 / 2
    assert score(WER(lowercase=True), ["A b"], [["a b"]]) == 0


def test_signature():
    expected = f"refs:closest|case:lc|tok:spaces|jiwer:{version('jiwer')}"
    assert WER(lowercase=True).signature() == expected
