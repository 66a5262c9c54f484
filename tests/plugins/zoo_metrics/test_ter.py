import pytest

from zoo_metrics.ter import TER


def test_known_value(score):
    # One insertion and one substitution; the references have 4 and 2 words.
    value = score(TER(), ["the cat sat", "a b"], [["the red cat sat"], ["a c"]])

    assert value == pytest.approx(100 * 2 / 6, abs=1e-9)


def test_a_shift_is_one_edit(score):
    assert score(TER(), ["c d a b"], [["a b c d"]]) == pytest.approx(100 / 4, abs=1e-9)


def test_edits_of_the_closest_reference_over_the_mean_length(score):
    # One edit to the first reference, four to the second; their lengths are 2 and 4.
    assert score(TER(), ["a b"], [["a c", "d e f g"]]) == pytest.approx(100 / 3, abs=1e-9)


def test_case_and_punctuation_options(score):
    assert score(TER(), ["The cat ."], [["the cat ."]]) == 0
    assert score(TER(case_sensitive=True), ["The cat ."], [["the cat ."]]) > 0
    assert score(TER(), ["the cat"], [["the cat ."]]) > 0
    assert score(TER(no_punct=True), ["the cat"], [["the cat ."]]) == 0
    assert score(TER(normalized=True), ["the cat."], [["the cat ."]]) == 0
