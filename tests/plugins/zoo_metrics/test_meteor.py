import nltk
import pytest
from nltk.translate.meteor_score import meteor_score

from zoo_metrics.meteor import METEOR


class NoSynonyms:
    """Stands for WordNet, whose corpus is not here."""

    def __init__(self):
        self.calls = 0

    def synsets(self, word):
        self.calls += 1
        return []


def nltk_meteor(prediction: str, texts: list[str], **options: float) -> float:
    wordnet = NoSynonyms()
    references = [text.split() for text in texts]
    return meteor_score(references, prediction.split(), wordnet=wordnet, **options)


@pytest.mark.parametrize(
    ("prediction", "P", "R", "runs", "aligned"),
    [
        ("the cat sat on the mat", 6 / 6, 6 / 6, 1, 6),
        ("on the mat sat the cat", 6 / 6, 6 / 6, 6, 6),
        ("the cat was sat on the mat", 6 / 7, 6 / 6, 2, 6),
        ("the cat", 2 / 2, 2 / 6, 2, 2),  # "the" takes the second one, far from "cat"
        ("the cats sat on the mats", 6 / 6, 6 / 6, 1, 6),
    ],
)
def test_sentences_by_hand(prediction, P, R, runs, aligned, score):
    F = 10 * P * R / (R + 9 * P)
    expected = F * (1 - 0.5 * (runs / aligned) ** 3)

    value = score(METEOR(), [prediction], [["the cat sat on the mat"]])

    assert value == pytest.approx(expected, abs=1e-12)


def test_published_examples(score):
    """As in Wikipedia's article on METEOR."""
    published = {
        "on the mat sat the cat": 0.5,
        "the cat sat on the mat": 0.9977,
        "the cat was sat on the mat": 0.9654,
    }
    for prediction, value in published.items():
        found = score(METEOR(), [prediction], [["the cat sat on the mat"]])
        assert found == pytest.approx(value, abs=5e-5)


def test_the_same_form_goes_before_the_same_stem(score):
    # "runs" takes "runs" and leaves "running" to "run": both in order, one run of words.
    value = score(METEOR(), ["run runs"], [["running runs"]])

    assert value == pytest.approx(1 - 0.5 * (1 / 2) ** 3, abs=1e-12)


def test_synonyms_do_not_count(score):
    assert score(METEOR(), ["car"], [["automobile"]]) == 0


@pytest.mark.parametrize("options", [{}, {"alpha": 0.5, "beta": 1.0, "gamma": 0.2}])
def test_every_pair_and_all_of_them_equal_nltk(options, pairs, score):
    predictions, references = pairs
    total = 0.0
    for prediction, texts in zip(predictions, references, strict=True):
        expected = nltk_meteor(prediction, texts, **options)
        total += expected
        value = score(METEOR(**options), [prediction], [texts])
        assert value == pytest.approx(expected, abs=1e-12)
    assert 0.1 < total / 240 < 0.9
    value = score(METEOR(**options), predictions, references)
    assert value == pytest.approx(total / 240, abs=1e-9)


def test_awkward_texts_equal_nltk(edge_case, score):
    scores = [nltk_meteor(p, texts) for p, texts in zip(*edge_case, strict=True)]

    assert score(METEOR(), *edge_case) == pytest.approx(sum(scores) / len(scores), abs=1e-12)


def test_a_recorded_corpus_equals_nltk(recorded_scores, score):
    references = [[text] for text in recorded_scores["ref"]]
    scores = [
        nltk_meteor(p, texts) for p, texts in zip(recorded_scores["hyp"], references, strict=True)
    ]

    value = score(METEOR(), recorded_scores["hyp"], references)

    assert value == pytest.approx(sum(scores) / len(scores), abs=1e-9)


def test_its_signature_says_that_synonyms_are_off():
    assert METEOR().signature() == (
        "refs:best|mean:sentences|alpha:0.9|beta:3.0|gamma:0.5|case:lc|tok:spaces"
        f"|stages:exact,porter|synonyms:off|nltk:{nltk.__version__}|version:1"
    )
