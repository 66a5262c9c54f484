import math
import sys

import pytest
from pycocoevalcap.cider.cider import Cider

from zoo_metrics.cider import CIDEr


def coco_cider(predictions: list[str], references: list[list[str]], sigma: float = 6.0) -> float:
    hypotheses = {i: [prediction.lower()] for i, prediction in enumerate(predictions)}
    targets = {i: [text.lower() for text in texts] for i, texts in enumerate(references)}
    return float(Cider(sigma=sigma).compute_score(targets, hypotheses)[0])


def test_captions_without_a_common_word_by_hand(score):
    # Words and pairs agree fully; there are no longer n-grams, which count as 0.
    assert score(CIDEr(), ["a b", "c d"], [["a b"], ["c d"]]) == pytest.approx(10 * 2 / 4)


def test_common_words_count_less_by_hand(score):
    # "the" is in all references, so its weight is 0; "cat" and "dog" are in one of two.
    value = score(CIDEr(), ["the cat", "the cat"], [["the cat"], ["the dog"]])

    assert value == pytest.approx(10 * (2 / 4 + 0) / 2, abs=1e-12)


def test_clipping_and_length_by_hand(score):
    # Words: a, a and b weigh ln 2 each; "a" is clipped to 1. Pairs: "a a", "a b" against "a b".
    value = score(CIDEr(), ["a a b", "x"], [["a b"], ["y"]])

    words = (1 * 1 + 1 * 1) / (math.sqrt(4 + 1) * math.sqrt(2))
    pairs = 1 / (math.sqrt(2) * 1)
    penalty = math.exp(-((2 - 1) ** 2) / (2 * 6**2))
    assert value == pytest.approx(10 * penalty * (words + pairs) / 4 / 2, abs=1e-12)


def test_one_caption_alone_has_no_weight(score):
    assert score(CIDEr(), ["the cat sat"], [["the cat sat"]]) == 0


@pytest.mark.parametrize("sigma", [6.0, 1.5])
def test_all_pairs_and_every_few_equal_pycocoevalcap(sigma, pairs, score):
    predictions, references = pairs
    whole = coco_cider(predictions, references, sigma)
    assert whole > 0.5
    value = score(CIDEr(sigma=sigma), predictions, references)
    assert value == pytest.approx(whole, abs=1e-9)
    for start in range(0, 240, 5):
        few = predictions[start : start + 5], references[start : start + 5]
        assert score(CIDEr(sigma=sigma), *few) == pytest.approx(coco_cider(*few, sigma), abs=1e-9)


def test_awkward_texts_equal_pycocoevalcap(edge_case, score):
    # Another item, or pycocoevalcap fails where no reference has a word, and idf is 0 elsewhere.
    corpus = [*edge_case[0], "an other text"], [*edge_case[1], ["an other text indeed"]]

    assert score(CIDEr(), *corpus) == pytest.approx(coco_cider(*corpus), abs=1e-9)


def test_its_dense_reference_equals_pycocoevalcap(pairs, edge_case):
    for corpus in (
        (pairs[0][:40], pairs[1][:40]),
        ([*edge_case[0], "x y"], [*edge_case[1], ["x y z"]]),
    ):
        assert CIDEr().reference(*corpus)["cider"] == pytest.approx(coco_cider(*corpus), abs=1e-9)


def test_references_without_a_word_have_the_value_0(score):
    assert score(CIDEr(), ["a b", ""], [[""], ["", " "]]) == 0


def test_a_recorded_corpus_equals_pycocoevalcap(recorded_scores, score):
    corpus = recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]]

    assert score(CIDEr(), *corpus) == pytest.approx(coco_cider(*corpus), abs=1e-9)


def test_it_needs_no_other_library(monkeypatch, score):
    for name in ("pycocoevalcap", "nltk", "sacrebleu", "rouge_score", "jiwer"):
        for module in [m for m in sys.modules if m.split(".")[0] == name]:
            monkeypatch.setitem(sys.modules, module, None)

    corpus = ["a b", "c d"], [["a b"], ["c d"]]

    assert score(CIDEr(), *corpus) == CIDEr().reference(*corpus)["cider"] == 5


def test_its_signature_says_which_cider_it_is():
    assert CIDEr(sigma=5.0).signature() == (
        "cider-d|order:4|sigma:5.0|df:references|case:lc|tok:spaces|version:1"
    )
