from importlib.metadata import version

import pytest
from rouge_score.rouge_scorer import RougeScorer

from zoo import ZooError
from zoo_metrics.rouge import ROUGE


def rouge_score_reference(
    predictions: list[str], references: list[list[str]], stem: bool = False
) -> dict:
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem)
    found = [scorer.score_multi(t, p) for p, t in zip(predictions, references, strict=True)]
    return {
        name: pytest.approx(sum(one[key].fmeasure for one in found) / len(found), abs=1e-9)
        for name, key in (("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL"))
    }


def test_one_sentence_by_hand(score):
    values = score(ROUGE(), ["The cat sat on mat!"], [["the cat on the mat"]])

    # 4 of 5 words ("the" counts once), 1 of 4 pairs; "the cat on mat" is common to both.
    assert values == {
        "rouge-1": pytest.approx(4 / 5),
        "rouge-2": pytest.approx(1 / 4),
        "rouge-l": pytest.approx(4 / 5),
    }


def test_precision_and_recall_weigh_the_same_by_hand(score):
    P, R = 2 / 2, 2 / 6

    values = score(ROUGE(), ["a b"], [["a x y b z w"]])

    assert values["rouge-1"] == values["rouge-l"] == pytest.approx(2 * P * R / (P + R))
    assert values["rouge-2"] == 0


def test_each_value_is_that_of_its_best_reference(score):
    values = score(ROUGE(), ["a b c"], [["a b x", "c b a"]])

    assert values == {
        "rouge-1": 1,
        "rouge-2": pytest.approx(1 / 2),
        "rouge-l": pytest.approx(2 / 3),
    }


@pytest.mark.parametrize("stem", [False, True])
def test_every_pair_and_all_of_them_equal_rouge_score(stem, pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = rouge_score_reference([prediction], [texts], stem)
        assert score(ROUGE(stem=stem), [prediction], [texts]) == expected
    assert score(ROUGE(stem=stem), predictions, references) == rouge_score_reference(*pairs, stem)


def test_awkward_texts_equal_rouge_score(edge_case, score):
    assert score(ROUGE(), *edge_case) == rouge_score_reference(*edge_case)


def test_a_recorded_corpus_equals_rouge_score(recorded_scores, score):
    references = [[text] for text in recorded_scores["ref"]]

    assert score(ROUGE(), recorded_scores["hyp"], references) == rouge_score_reference(
        recorded_scores["hyp"], references
    )


def test_other_scripts_need_the_tokeniser_for_words(score):
    pair = ["Рыжий кот прилег"], [["рыжий кот, лежит!"]]

    assert score(ROUGE(), *pair)["rouge-1"] == 0
    values = score(ROUGE(tokenize="words"), *pair)
    assert values["rouge-1"] == values["rouge-l"] == pytest.approx(2 / 3)
    assert values["rouge-2"] == pytest.approx(1 / 2)


def test_stems_of_other_scripts_are_refused():
    with pytest.raises(ZooError, match=r"^rouge stems English only"):
        ROUGE(tokenize="words", stem=True)


def test_its_signature():
    assert ROUGE(stem=True).signature() == (
        "f1|refs:best|mean:sentences|case:lc|tok:ascii|stem:porter"
        f"|rouge-score:{version('rouge-score')}"
    )
