from importlib.metadata import version

import jiwer
import pytest

from zoo_metrics.wer import WER


def levenshtein(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def test_edits_for_each_word_of_reference_by_hand(score):
    # One word is missing, one wrong, two are too many; 4 + 3 words are wanted.
    value = score(WER(), ["the cat sat", "a x c d e"], [["the red cat sat"], ["a b c"]])

    assert value == pytest.approx((1 + 1 + 2) / 7, abs=1e-12)


def test_the_reference_with_the_lowest_rate_counts_by_hand(score):
    # 1 edit in 2 words, or 2 edits in 5: the second has the lower rate.
    assert score(WER(), ["a b c"], [["a b", "x a b c y"]]) == pytest.approx(2 / 5, abs=1e-12)


def test_of_equal_rates_the_first_counts_by_hand(score):
    # 1 edit in 2 words, 2 edits in 4; then one more pair, of 3 words without an edit.
    one = score(WER(), ["a x", "c d e"], [["a b", "a x y z"], ["c d e"]])
    other = score(WER(), ["a x", "c d e"], [["a x y z", "a b"], ["c d e"]])

    assert (one, other) == (pytest.approx(1 / 5), pytest.approx(2 / 7))


def test_every_pair_equals_jiwer_and_a_plain_edit_distance(pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = min(jiwer.wer(text, prediction) for text in texts)
        value = score(WER(), [prediction], [texts])
        assert value == pytest.approx(expected, abs=1e-12)
        distances = [
            levenshtein(text.split(), prediction.split()) / len(text.split()) for text in texts
        ]
        assert value == pytest.approx(min(distances), abs=1e-12)


def test_all_pairs_with_one_reference_equal_jiwer(pairs, score):
    predictions, firsts = pairs[0], [texts[0] for texts in pairs[1]]

    expected = jiwer.wer(firsts, predictions)

    assert 0.1 < expected < 1
    value = score(WER(), predictions, [[text] for text in firsts])
    assert value == pytest.approx(expected, abs=1e-12)


def test_awkward_texts_equal_jiwer(edge_case, score):
    firsts = [texts[0] for texts in edge_case[1]]

    value = score(WER(), edge_case[0], [[text] for text in firsts])

    assert value == pytest.approx(jiwer.wer(firsts, edge_case[0]), abs=1e-12)
    assert score(WER(), *edge_case) == pytest.approx(WER().reference(*edge_case)["wer"], abs=1e-12)


def test_a_recorded_corpus_equals_jiwer(recorded_scores, score):
    value = score(WER(), recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    assert value == pytest.approx(
        jiwer.wer(recorded_scores["ref"], recorded_scores["hyp"]), abs=1e-12
    )


def test_case_counts_unless_told_otherwise(score):
    assert score(WER(), ["A b"], [["a b"]]) == 1 / 2
    assert score(WER(lowercase=True), ["A b"], [["a b"]]) == 0


def test_its_signature():
    expected = f"refs:closest|case:lc|tok:spaces|jiwer:{version('jiwer')}"
    assert WER(lowercase=True).signature() == expected
