import nltk
import pytest

from zoo_metrics.meteor_15 import METEOR15
from zoo_metrics.meteor_2005 import METEOR2005


def test_segments_match_the_program(captions, score):
    for item in captions["items"]:
        value = score(METEOR15(), [item["prediction"]], [item["references"]])
        assert value == pytest.approx(item["meteor-1.5"], abs=1e-12)


def test_the_corpus_matches_the_program(captions, caption_texts, score):
    expected = captions["corpus"]["meteor-1.5"]
    assert score(METEOR15(), *caption_texts) == pytest.approx(expected, abs=1e-12)


def test_captions_score_far_less_than_with_the_metric_of_2005(caption_texts, score):
    assert score(METEOR15(), *caption_texts) < 0.7 * score(METEOR2005(), *caption_texts)


def test_known_value(score):
    # "the" is a function word, "cats" matches by stem; one chunk of two words.
    P = (0.25 + 0.6 * 0.75) / (0.25 + 0.75)
    R = (0.25 + 0.6 * 0.75) / (0.25 + 2 * 0.75)
    expected = P * R / (0.85 * P + 0.15 * R) * (1 - 0.6 * (1 / 2) ** 0.2)

    value = score(METEOR15(), ["The cats"], [["the cat sleeps"]])

    assert value == pytest.approx(expected, abs=1e-12)


def test_equal_texts_have_no_penalty(score):
    assert score(METEOR15(), ["the cat sleeps"], [["the cat sleeps"]]) == 1


def test_texts_without_matches_score_zero(score):
    assert score(METEOR15(), ["car", "", ""], [["automobile"], ["a"], [""]]) == 0


def test_signature():
    assert METEOR15().signature() == (
        "meteor-1.5|refs:best|corpus|alpha:0.85|beta:0.2|gamma:0.6|delta:0.75|case:lc|tok:spaces"
        f"|matchers:exact,snowball=0.6|nltk:{nltk.__version__}|version:1"
    )
