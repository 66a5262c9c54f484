import math

import nltk
import pytest

from zoo import ZooError
from zoo_metrics.ribes import RIBES

HYPOTHESIS = "he read the book because he was interested in world history"
REFERENCE = "he was interested in world history because he read the book"


def test_examples_of_the_paper(score):
    # Isozaki et al. 2010: 21 of 55 and 3 of 6 pairs of words are in order.
    assert score(RIBES(), [HYPOTHESIS], [[REFERENCE]]) == pytest.approx(21 / 55, abs=1e-12)
    value = score(RIBES(), ["Bob hit John yesterday"], [["John hit Bob yesterday"]])
    assert value == pytest.approx(3 / 6, abs=1e-12)


def test_known_value_with_unaligned_words_and_brevity(score):
    # 3 of 4 words are aligned, all in order; the reference is 2 words longer.
    value = score(RIBES(), ["a b c x"], [["a b c d e f"]])

    assert value == pytest.approx((3 / 4) ** 0.25 * math.exp(1 - 6 / 4) ** 0.10, abs=1e-12)


def test_texts_that_are_too_long_raise():
    metric = RIBES()
    with pytest.raises(ZooError, match=r"ribes.*2001.*2000"):
        metric.update(["a b", "a " * 2001], [["a b"], ["a b"]])

    assert metric.count == 0


def test_case_is_significant_by_default(score):
    assert score(RIBES(), ["A B"], [["a b"]]) == 0
    assert score(RIBES(lowercase=True), ["A B"], [["a b"]]) == 1


def test_signature():
    expected = f"refs:best|alpha:0.25|beta:0.1|case:mixed|tok:spaces|nltk:{nltk.__version__}"
    assert RIBES().signature() == expected
