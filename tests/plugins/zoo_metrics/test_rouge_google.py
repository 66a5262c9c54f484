from importlib.metadata import version

import pytest

from zoo import ZooError
from zoo_metrics.rouge_google import ROUGEGoogle


def test_known_values(score):
    values = score(ROUGEGoogle(), ["The cat sat on mat!"], [["the cat on the mat"]])

    # 4 of 5 unigrams ("the" matches once), 1 of 4 bigrams; the LCS is "the cat on mat".
    assert values == {
        "rouge-1": pytest.approx(4 / 5),
        "rouge-2": pytest.approx(1 / 4),
        "rouge-l": pytest.approx(4 / 5),
    }


def test_known_f1(score):
    P, R = 2 / 2, 2 / 6

    values = score(ROUGEGoogle(), ["a b"], [["a x y b z w"]])

    assert values["rouge-1"] == values["rouge-l"] == pytest.approx(2 * P * R / (P + R))
    assert values["rouge-2"] == 0


def test_each_value_uses_its_best_reference(score):
    values = score(ROUGEGoogle(), ["a b c"], [["a b x", "c b a"]])

    assert values == {
        "rouge-1": 1,
        "rouge-2": pytest.approx(1 / 2),
        "rouge-l": pytest.approx(2 / 3),
    }


def test_other_scripts_need_the_words_tokeniser(score):
    pair = ["Рыжий кот прилег"], [["рыжий кот, лежит!"]]

    assert score(ROUGEGoogle(), *pair)["rouge-1"] == 0
    values = score(ROUGEGoogle(tokenize="words"), *pair)
    assert values["rouge-1"] == values["rouge-l"] == pytest.approx(2 / 3)
    assert values["rouge-2"] == pytest.approx(1 / 2)


def test_stemming_of_words_raises():
    with pytest.raises(ZooError, match=r"stem.*'ascii'"):
        ROUGEGoogle(tokenize="words", stem=True)


def test_signature():
    assert ROUGEGoogle(stem=True).signature() == (
        "f1|refs:best|mean:sentences|case:lc|tok:ascii|stem:porter"
        f"|rouge-score:{version('rouge-score')}"
    )
