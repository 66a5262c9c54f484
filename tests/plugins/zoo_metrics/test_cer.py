from importlib.metadata import version

import jiwer
import pytest

from zoo_metrics.cer import CER


def levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def test_edits_for_each_character_of_reference_by_hand(score):
    # One letter is wrong, a space and a letter are too many; 3 + 2 characters are wanted.
    assert score(CER(), ["cut", "a bc"], [["cat"], ["ab"]]) == pytest.approx(3 / 5, abs=1e-12)


def test_the_reference_with_the_lowest_rate_counts_by_hand(score):
    # 1 edit in 2 characters, or 2 edits in 5: the second has the lower rate.
    assert score(CER(), ["abc"], [["ab", "xabcy"]]) == pytest.approx(2 / 5, abs=1e-12)


def test_a_character_is_a_code_point(score):
    assert score(CER(), ["кот"], [["кит"]]) == pytest.approx(1 / 3)
    assert score(CER(), ["café"], [["cafe\u0301"]]) == pytest.approx(2 / 5)


def test_every_pair_equals_jiwer_and_a_plain_edit_distance(pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = min(jiwer.cer(text, prediction) for text in texts)
        value = score(CER(), [prediction], [texts])
        assert value == pytest.approx(expected, abs=1e-12)
        plain = min(levenshtein(text, prediction) / len(text) for text in texts)
        assert value == pytest.approx(plain, abs=1e-12)


def test_all_pairs_with_one_reference_equal_jiwer(pairs, score):
    predictions, firsts = pairs[0], [texts[0] for texts in pairs[1]]

    expected = jiwer.cer(firsts, predictions)

    assert 0.1 < expected < 1
    value = score(CER(), predictions, [[text] for text in firsts])
    assert value == pytest.approx(expected, abs=1e-12)


def test_awkward_texts_equal_jiwer(edge_case, score):
    firsts = [texts[0] for texts in edge_case[1]]

    value = score(CER(), edge_case[0], [[text] for text in firsts])

    assert value == pytest.approx(jiwer.cer(firsts, edge_case[0]), abs=1e-12)
    assert score(CER(), *edge_case) == pytest.approx(CER().reference(*edge_case)["cer"], abs=1e-12)


def test_a_recorded_corpus_equals_jiwer(recorded_scores, score):
    value = score(CER(), recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    assert value == pytest.approx(
        jiwer.cer(recorded_scores["ref"], recorded_scores["hyp"]), abs=1e-12
    )


def test_case_counts_unless_told_otherwise(score):
    assert score(CER(), ["Ab"], [["ab"]]) == 1 / 2
    assert score(CER(lowercase=True), ["Ab"], [["ab"]]) == 0


def test_its_signature():
    assert CER().signature() == f"refs:closest|case:mixed|tok:characters|jiwer:{version('jiwer')}"
