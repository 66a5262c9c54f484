import math

import pytest
from nltk.translate.nist_score import corpus_nist

from zoo_metrics.nist import NIST


def nltk_nist(predictions: list[str], references: list[list[str]], order: int = 5) -> float:
    hypotheses = [prediction.split() for prediction in predictions]
    return corpus_nist(
        [[text.split() for text in texts] for texts in references], hypotheses, order
    )


def test_several_references_match_mteval(captions, caption_texts, score):
    for order, expected in enumerate(captions["corpus"]["nist"], 1):
        assert score(NIST(max_order=order), *caption_texts) == pytest.approx(expected, abs=5e-5)


def test_matches_are_clipped_by_the_maximum_over_references(score):
    value = score(NIST(max_order=1), ["a b c d"], [["a b x y", "x y c d"]])

    assert value == pytest.approx(math.log2(8 / 1))  # each word is one of eight reference words


def test_the_reference_length_is_the_mean(score):
    short = score(NIST(max_order=1), ["a b"], [["a b", "a b c d"]])

    # Information: log2(6/2) for each word; the mean length is 3.
    assert short == pytest.approx(math.log2(3) * 0.5, abs=1e-12)


def test_known_value(score):
    value = score(NIST(max_order=2), ["a b a c"], [["a b a d a b"]])

    # The information of "a" is log2(6/3), of "b" log2(6/2), of "a b" log2(3/2), of "b a" log2(2/1).
    unigrams = (2 * math.log2(6 / 3) + math.log2(6 / 2)) / 4
    bigrams = (math.log2(3 / 2) + math.log2(2 / 1)) / 3
    beta = math.log(0.5) / math.log(1.5) ** 2
    brevity = math.exp(beta * math.log(4 / 6) ** 2)
    assert brevity == pytest.approx(1 / 2)
    assert value == pytest.approx((unigrams + bigrams) * brevity, abs=1e-12)


def test_each_pair_and_the_corpus_match_nltk(pairs, score):
    predictions, references = pairs
    references = [texts[:1] for texts in references]  # nltk takes the best of several
    compared = 0
    for prediction, texts in zip(predictions, references, strict=True):
        words = len(prediction.split())
        if words:  # nltk divides by zero without n-grams
            expected = nltk_nist([prediction], [texts], min(5, words))
            assert score(NIST(), [prediction], [texts]) == pytest.approx(expected, abs=1e-9)
            compared += 1
    assert compared >= 200
    expected = nltk_nist(predictions, references)
    assert expected > 1
    assert score(NIST(), predictions, references) == pytest.approx(expected, abs=1e-9)


def test_edge_cases_match_nltk(edge_case, score):
    predictions, references = edge_case[0], [texts[:1] for texts in edge_case[1]]
    order = min(5, max(len(prediction.split()) for prediction in predictions))
    has_words = any(text.split() for texts in references for text in texts)
    expected = nltk_nist(predictions, references, order) if order and has_words else 0

    assert score(NIST(), predictions, references) == pytest.approx(expected, abs=1e-9)


def test_a_recorded_corpus_matches_nltk(recorded_scores, score):
    corpus = recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]]

    assert score(NIST(), *corpus) == pytest.approx(nltk_nist(*corpus), abs=1e-9)


def test_orders_longer_than_every_prediction_add_nothing(score):
    # log2(2/1) for each of the two words, log2(1/1) for the bigram.
    assert score(NIST(), ["a b"], [["a b"]]) == 1


def test_case_is_significant_by_default(score):
    assert score(NIST(), ["A B"], [["a b"]]) == 0
    assert score(NIST(lowercase=True), ["A B"], [["a b"]]) == 1


def test_signature():
    expected = "order:4|case:lc|tok:spaces|refs:max-clip,mean-length|version:2"
    assert NIST(max_order=4, lowercase=True).signature() == expected
