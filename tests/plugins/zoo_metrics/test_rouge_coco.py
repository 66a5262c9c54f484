import pytest

from zoo_metrics.rouge_coco import ROUGECoco


def test_scores_match_pycocoevalcap(captions, score):
    for item in captions["items"]:
        value = score(ROUGECoco(), [item["prediction"]], [item["references"]])
        assert value == pytest.approx(item["rouge-coco"], abs=1e-12)


def test_the_corpus_matches_pycocoevalcap(captions, caption_texts, score):
    expected = captions["corpus"]["rouge-coco"]
    assert score(ROUGECoco(), *caption_texts) == pytest.approx(expected, abs=1e-12)


def test_precision_and_recall_are_maximal_separately(score):
    # Precision 2/2 with the first reference, recall 1/1 with the second.
    assert score(ROUGECoco(), ["a b"], [["a b c d", "b"]]) == 1
    assert score(ROUGECoco(), ["a b"], [["a b c d"]]) == pytest.approx(2.44 * 0.5 / (0.5 + 1.44))


def test_texts_without_words_score_zero(score):
    assert score(ROUGECoco(), ["", "a"], [["a"], [""]]) == 0


def test_signature():
    expected = "beta:1.2|refs:max-p,max-r|mean:sentences|case:mixed|tok:spaces|version:1"
    assert ROUGECoco().signature() == expected
