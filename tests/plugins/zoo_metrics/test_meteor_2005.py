import nltk
import pytest

from zoo_metrics.meteor_2005 import METEOR2005


@pytest.mark.parametrize(
    ("prediction", "P", "R", "chunks", "aligned"),
    [
        ("the cat sat on the mat", 6 / 6, 6 / 6, 1, 6),
        ("on the mat sat the cat", 6 / 6, 6 / 6, 6, 6),
        ("the cat was sat on the mat", 6 / 7, 6 / 6, 2, 6),
        ("the cat", 2 / 2, 2 / 6, 2, 2),  # "the" is aligned with the second "the"
        ("the cats sat on the mats", 6 / 6, 6 / 6, 1, 6),
    ],
)
def test_known_values(prediction, P, R, chunks, aligned, score):
    F = 10 * P * R / (R + 9 * P)
    expected = F * (1 - 0.5 * (chunks / aligned) ** 3)

    value = score(METEOR2005(), [prediction], [["the cat sat on the mat"]])

    assert value == pytest.approx(expected, abs=1e-12)


def test_published_examples(score):
    """The examples of the Wikipedia article on METEOR."""
    published = {
        "on the mat sat the cat": 0.5,
        "the cat sat on the mat": 0.9977,
        "the cat was sat on the mat": 0.9654,
    }
    for prediction, value in published.items():
        actual = score(METEOR2005(), [prediction], [["the cat sat on the mat"]])
        assert actual == pytest.approx(value, abs=5e-5)


def test_equal_forms_are_aligned_before_equal_stems(score):
    # "runs" is aligned with "runs" and "run" with "running": one chunk.
    value = score(METEOR2005(), ["run runs"], [["running runs"]])

    assert value == pytest.approx(1 - 0.5 * (1 / 2) ** 3, abs=1e-12)


def test_synonyms_are_not_used(score):
    assert score(METEOR2005(), ["car"], [["automobile"]]) == 0


def test_signature():
    assert METEOR2005().signature() == (
        "refs:best|mean:sentences|alpha:0.9|beta:3.0|gamma:0.5|case:lc|tok:spaces"
        f"|stages:exact,porter|synonyms:off|nltk:{nltk.__version__}|version:1"
    )
