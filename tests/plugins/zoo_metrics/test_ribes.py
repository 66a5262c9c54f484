import math

import nltk
import pytest
from nltk.translate.ribes_score import corpus_ribes, sentence_ribes

from zoo import ZooError
from zoo_metrics.ribes import RIBES

HYPOTHESIS = "he read the book because he was interested in world history"
REFERENCE = "he was interested in world history because he read the book"


def nltk_ribes(prediction: str, texts: list[str], **options: float) -> float:
    return sentence_ribes([text.split() for text in texts], prediction.split(), **options)


def test_the_papers_examples_by_hand(score):
    # Isozaki et al. 2010: 21 of the 55 pairs of words are in order; 3 of 6 are.
    assert score(RIBES(), [HYPOTHESIS], [[REFERENCE]]) == pytest.approx(21 / 55, abs=1e-12)
    value = score(RIBES(), ["Bob hit John yesterday"], [["John hit Bob yesterday"]])
    assert value == pytest.approx(3 / 6, abs=1e-12)


def test_unaligned_words_and_brevity_cost_by_hand(score):
    # 3 of 4 words are aligned, all in order; the reference is 2 words longer.
    value = score(RIBES(), ["a b c x"], [["a b c d e f"]])

    assert value == pytest.approx((3 / 4) ** 0.25 * math.exp(1 - 6 / 4) ** 0.10, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.5, "beta": 0.3}])
def test_every_pair_and_all_of_them_equal_nltk(options, pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = nltk_ribes(prediction, texts, **options)
        value = score(RIBES(**options), [prediction], [texts])
        assert value == pytest.approx(expected, abs=1e-12)
    whole = corpus_ribes(
        [[text.split() for text in texts] for texts in references],
        [prediction.split() for prediction in predictions],
        **options,
    )
    assert 0.1 < whole < 0.9
    assert score(RIBES(**options), predictions, references) == pytest.approx(whole, abs=1e-9)


def test_awkward_texts_equal_nltk(edge_case, score):
    scores = [nltk_ribes(p, texts) for p, texts in zip(*edge_case, strict=True)]

    assert score(RIBES(), *edge_case) == pytest.approx(sum(scores) / len(scores), abs=1e-12)


def test_a_recorded_corpus_equals_nltk(recorded_scores, score):
    references = [[text] for text in recorded_scores["ref"]]
    scores = [
        nltk_ribes(p, texts) for p, texts in zip(recorded_scores["hyp"], references, strict=True)
    ]

    value = score(RIBES(), recorded_scores["hyp"], references)

    assert value == pytest.approx(sum(scores) / len(scores), abs=1e-9)


def test_texts_too_long_to_align_are_refused_before_anything_counts():
    metric = RIBES()
    with pytest.raises(ZooError, match=r"^ribes takes texts of at most 2000 words, but one has"):
        metric.update(["a b", "a " * 2001], [["a b"], ["a b"]])

    assert metric.count == 0


def test_case_counts_unless_told_otherwise(score):
    assert score(RIBES(), ["A B"], [["a b"]]) == 0
    assert score(RIBES(lowercase=True), ["A B"], [["a b"]]) == 1


def test_its_signature():
    expected = f"refs:best|alpha:0.25|beta:0.1|case:mixed|tok:spaces|nltk:{nltk.__version__}"
    assert RIBES().signature() == expected
