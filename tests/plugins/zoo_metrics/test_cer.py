from importlib.metadata import version

import pytest

from zoo_metrics.cer import CER


def test_known_value(score):
    # One substitution, two insertions; the references have 3 + 2 characters.
    assert score(CER(), ["cut", "a bc"], [["cat"], ["ab"]]) == pytest.approx(3 / 5, abs=1e-12)


def test_the_reference_with_the_lowest_rate_is_used(score):
    # 1 edit in 2 characters, or 2 edits in 5: the second has the lower rate.
    assert score(CER(), ["abc"], [["ab", "xabcy"]]) == pytest.approx(2 / 5, abs=1e-12)


def test_a_character_is_a_code_point(score):
    assert score(CER(), ["кот"], [["кит"]]) == pytest.approx(1 / 3)
    assert score(CER(), ["café"], [["cafe\u0301"]]) == pytest.approx(2 / 5)


def test_case_is_significant_by_default(score):
    assert score(CER(), ["Ab"], [["ab"]]) == 1 / 2
    assert score(CER(lowercase=True), ["Ab"], [["ab"]]) == 0


def test_signature():
    assert CER().signature() == f"refs:closest|case:mixed|tok:characters|jiwer:{version('jiwer')}"
