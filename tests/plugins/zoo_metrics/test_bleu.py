import math

import pytest
import sacrebleu

from zoo_metrics.bleu import BLEU


def bleu(predictions: list[str], references: list[list[str]], **options: object) -> float:
    metric = BLEU(**options)
    metric.update(predictions, references)
    return metric.compute()["bleu"]


def test_known_value():
    value = bleu(["the cat sat on the mat"], [["the cat sat on the red mat"]])

    # All 6 words match; "the mat" and the n-grams that contain it do not.
    precisions = (6 / 6) * (4 / 5) * (3 / 4) * (2 / 3)
    brevity = math.exp(1 - 7 / 6)
    assert value == pytest.approx(100 * brevity * precisions ** (1 / 4), abs=1e-9)


def test_counts_are_clipped_to_the_maximum_over_the_references():
    value = bleu(["a a a b c d e"], [["a b c d e x x", "a a y y y y y"]])

    # "a" matches twice, as in the second reference; "a a" matches once of two; "a a b", "a a b c",
    # "a a a" and "a a a b" do not match.
    precisions = (6 / 7) * (5 / 6) * (3 / 5) * (2 / 4)
    assert value == pytest.approx(100 * precisions ** (1 / 4), abs=1e-9)


def test_counts_are_summed_over_the_corpus():
    predictions = ["a b c d", "a b c d e f g h"]
    references = [["a b c d"], ["a b c d e x g h"]]

    # 4 + 7 of 12 unigrams, 3 + 5 of 10 bigrams, 2 + 3 of 8 trigrams, 1 + 2 of 6 4-grams.
    precisions = (11 / 12) * (8 / 10) * (5 / 8) * (3 / 6)
    assert bleu(predictions, references) == pytest.approx(100 * precisions**0.25, abs=1e-9)


def test_an_order_without_a_match_is_smoothed():
    value = bleu(["a b c x"], [["a b c d"]])

    precisions = (3 / 4) * (2 / 3) * (1 / 2) * (0.5 / 1)
    assert value == pytest.approx(100 * precisions**0.25, abs=1e-9)


def test_repeated_references_do_not_change_the_value(pairs):
    predictions, references = pairs
    # A repeated reference changes neither the clipped counts nor the closest length.
    full = [[*texts, *[texts[0]] * (3 - len(texts))] for texts in references]
    streams = [list(stream) for stream in zip(*full, strict=True)]

    expected = sacrebleu.corpus_bleu(predictions, streams).score

    assert bleu(predictions, references) == pytest.approx(expected, abs=1e-9)


def test_known_value_with_order_2_and_smoothing():
    """3 of 5 unigrams and 1 of 4 bigrams match."""
    prediction, reference = "рыжий кот прилег на лавку", "рыжий кот лежит на диване"

    value = bleu([prediction], [[reference]], max_order=2)
    assert value == pytest.approx(100 * math.sqrt(3 / 5 * 1 / 4), abs=1e-9)
    # No trigram or 4-gram matches: sacrebleu counts a half and a quarter of a match.
    smoothed = (3 / 5) * (1 / 4) * (1 / 2 / 3) * (1 / 4 / 2)
    assert bleu([prediction], [[reference]]) == pytest.approx(100 * smoothed**0.25, abs=1e-9)


def test_case_is_significant_by_default():
    predictions, references = ["The Cat sat on a mat"], [["the cat sat on a mat"]]

    assert bleu(predictions, references) < 100
    assert bleu(predictions, references, lowercase=True) == pytest.approx(100, abs=1e-9)


def test_references_are_copied():
    references = [["a b c d e"]]
    metric = BLEU()
    metric.update(["a b c d e"], references)

    metric.update(["x y z w v"], [["p q r s t"]])
    references[0].append("y")

    assert references == [["a b c d e", "y"]]
    assert metric.references == [["a b c d e"], ["p q r s t"]]


def test_signature():
    metric = BLEU(tokenize="intl", lowercase=True)
    metric.update(["a b c d e"], [["a b c d e", "a b c d f"]])

    assert metric.signature() == (
        f"nrefs:2|case:lc|eff:no|tok:intl|smooth:exp|version:{sacrebleu.__version__}"
    )


def test_signature_includes_the_order():
    metric = BLEU(max_order=2)
    metric.update(["a b c d e"], [["a b c d e"]])

    assert metric.signature().startswith("order:2|nrefs:1|")
