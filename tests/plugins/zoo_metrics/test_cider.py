import math
import sys

import pytest
from pycocoevalcap.cider.cider import Cider

from zoo_metrics.cider import CIDEr


def coco_cider(predictions: list[str], references: list[list[str]], sigma: float = 6.0) -> float:
    hypotheses = {i: [prediction.lower()] for i, prediction in enumerate(predictions)}
    targets = {i: [text.lower() for text in texts] for i, texts in enumerate(references)}
    return float(Cider(sigma=sigma).compute_score(targets, hypotheses)[0])


def test_known_value(score):
    # Unigrams and bigrams match fully; there are no longer n-grams, which score 0.
    assert score(CIDEr(), ["a b", "c d"], [["a b"], ["c d"]]) == pytest.approx(10 * 2 / 4)


def test_known_value_with_common_words(score):
    # "the" is in all references, so its weight is 0; "cat" and "dog" are in one of two.
    value = score(CIDEr(), ["the cat", "the cat"], [["the cat"], ["the dog"]])

    assert value == pytest.approx(10 * (2 / 4 + 0) / 2, abs=1e-12)


def test_known_value_with_clipping_and_length_penalty(score):
    # Unigrams a, a and b have weight ln 2; "a" is clipped to 1. Bigrams: "a a", "a b" and "a b".
    value = score(CIDEr(), ["a a b", "x"], [["a b"], ["y"]])

    unigrams = (1 * 1 + 1 * 1) / (math.sqrt(4 + 1) * math.sqrt(2))
    bigrams = 1 / (math.sqrt(2) * 1)
    penalty = math.exp(-((2 - 1) ** 2) / (2 * 6**2))
    assert value == pytest.approx(10 * penalty * (unigrams + bigrams) / 4 / 2, abs=1e-12)


def test_a_single_caption_scores_zero(score):
    assert score(CIDEr(), ["the cat sat"], [["the cat sat"]]) == 0


@pytest.mark.parametrize("sigma", [6.0, 1.5])
def test_corpora_match_pycocoevalcap(sigma, pairs, score):
    predictions, references = pairs
    expected = coco_cider(predictions, references, sigma)
    assert expected > 0.5
    value = score(CIDEr(sigma=sigma), predictions, references)
    assert value == pytest.approx(expected, abs=1e-9)
    for start in range(0, 240, 5):
        part = predictions[start : start + 5], references[start : start + 5]
        assert score(CIDEr(sigma=sigma), *part) == pytest.approx(coco_cider(*part, sigma), abs=1e-9)


def test_edge_cases_match_pycocoevalcap(edge_case, score):
    # pycocoevalcap fails if no reference has a word; with a single item, idf is 0.
    corpus = [*edge_case[0], "another text"], [*edge_case[1], ["another text indeed"]]

    assert score(CIDEr(), *corpus) == pytest.approx(coco_cider(*corpus), abs=1e-9)


def test_references_without_words_score_zero(score):
    assert score(CIDEr(), ["a b", ""], [[""], ["", " "]]) == 0


def test_a_recorded_corpus_matches_pycocoevalcap(recorded_scores, score):
    corpus = recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]]

    assert score(CIDEr(), *corpus) == pytest.approx(coco_cider(*corpus), abs=1e-9)


def test_needs_no_other_library(monkeypatch, score):
    for name in ("pycocoevalcap", "nltk", "sacrebleu", "rouge_score", "jiwer"):
        for module in [m for m in sys.modules if m.split(".")[0] == name]:
            monkeypatch.setitem(sys.modules, module, None)

    corpus = ["a b", "c d"], [["a b"], ["c d"]]

    assert score(CIDEr(), *corpus) == CIDEr().reference(*corpus)["cider"] == 5


def test_signature():
    assert CIDEr(sigma=5.0).signature() == (
        "cider-d|order:4|sigma:5.0|df:references|case:lc|tok:spaces|version:1"
    )
