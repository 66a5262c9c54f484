import math
import random
from collections import Counter

import pytest

from zoo_metrics.bleu import BLEU

sacrebleu = pytest.importorskip("sacrebleu")


def bleu(predictions: list[str], references: list[list[str]], **options: object) -> float:
    metric = BLEU(**options)
    metric.update(predictions, references)
    return metric.compute()["bleu"]


def reference_bleu(predictions: list[str], references: list[list[str]]) -> float:
    """Papineni et al. 2002, sections 2.1 to 2.3, on words split at spaces."""
    right, total = [0] * 4, [0] * 4
    hypothesis_length, wanted = 0, 0
    for prediction, texts in zip(predictions, references, strict=True):
        words = prediction.split()
        hypothesis_length += len(words)
        lengths = [len(text.split()) for text in texts]
        wanted += min(lengths, key=lambda length: (abs(length - len(words)), length))
        for n in range(1, 5):
            counts = ngrams(words, n)
            max_counts: Counter[tuple[str, ...]] = Counter()
            for text in texts:
                max_counts |= ngrams(text.split(), n)
            right[n - 1] += sum((counts & max_counts).values())
            total[n - 1] += sum(counts.values())
    brevity = min(1, math.exp(1 - wanted / hypothesis_length))
    precisions = [math.log(r / t) for r, t in zip(right, total, strict=True)]
    return 100 * brevity * math.exp(sum(precisions) / 4)


def ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def corpus(seed: int) -> tuple[list[str], list[list[str]]]:
    """Twelve predictions, each a spoilt copy of one of its one to three references."""
    rng = random.Random(seed)
    words = ["a", "cat", "sat", "on", "the", "mat", "and", "saw", "dog"]
    counts = [1, 2, 3] * 4
    references = [
        [" ".join(rng.choices(words, k=rng.randint(5, 12))) for _ in range(count)]
        for count in counts
    ]
    predictions = []
    for texts in references:
        kept = [word for word in rng.choice(texts).split() if rng.random() < 0.9]
        predictions.append(" ".join(w if rng.random() < 0.9 else rng.choice(words) for w in kept))
    return predictions, references


def test_one_sentence_by_hand():
    value = bleu(["the cat sat on the mat"], [["the cat sat on the red mat"]])

    # All 6 words occur; "the mat" is not among the references' pairs, nor what contains it.
    precisions = (6 / 6) * (4 / 5) * (3 / 4) * (2 / 3)
    brevity = math.exp(1 - 7 / 6)
    assert value == pytest.approx(100 * brevity * precisions ** (1 / 4), abs=1e-9)


def test_words_are_clipped_at_their_count_in_the_best_reference():
    value = bleu(["a a a b c d e"], [["a b c d e x x", "a a y y y y y"]])

    # "a" counts twice, as in the second reference; "a a" counts once of the two that were said;
    # "a a b" and "a a b c" occur nowhere, nor do "a a a" and "a a a b".
    precisions = (6 / 7) * (5 / 6) * (3 / 5) * (2 / 4)
    assert value == pytest.approx(100 * precisions ** (1 / 4), abs=1e-9)


def test_a_corpus_is_scored_as_a_whole_and_not_as_a_mean_of_sentences():
    predictions = ["a b c d", "a b c d e f g h"]
    references = [["a b c d"], ["a b c d e x g h"]]

    # 4 + 7 of 12 words, 3 + 5 of 10 pairs, 2 + 3 of 8 triples, 1 + 2 of 6 fours.
    precisions = (11 / 12) * (8 / 10) * (5 / 8) * (3 / 6)
    assert bleu(predictions, references) == pytest.approx(100 * precisions**0.25, abs=1e-9)


def test_an_order_without_any_match_is_smoothed_to_half_a_match():
    value = bleu(["a b c x"], [["a b c d"]])

    precisions = (3 / 4) * (2 / 3) * (1 / 2) * (0.5 / 1)
    assert value == pytest.approx(100 * precisions**0.25, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_corpora_with_ragged_references_equal_the_papers_formula(seed):
    predictions, references = corpus(seed)

    expected = reference_bleu(predictions, references)

    assert 1 < expected < 99
    assert bleu(predictions, references) == pytest.approx(expected, abs=1e-9)


def test_ragged_references_equal_sacrebleu_with_the_gaps_filled_by_repeats():
    predictions, references = corpus(5)
    # A reference given twice changes neither the clipped counts nor the closest length.
    full = [[*texts, *[texts[0]] * (3 - len(texts))] for texts in references]
    streams = [list(stream) for stream in zip(*full, strict=True)]

    expected = sacrebleu.corpus_bleu(predictions, streams).score

    assert bleu(predictions, references) == pytest.approx(expected, abs=1e-9)
    assert BLEU().reference(predictions, references) == {"bleu": pytest.approx(expected, abs=1e-9)}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("BLEU/13a", {}),
        ("BLEU/13a_lc", {"lowercase": True}),
        ("BLEU/intl", {"tokenize": "intl"}),
        ("BLEU/none", {"tokenize": "none"}),
        ("BLEU/char", {"tokenize": "char"}),
        ("BLEU/13a_maxorder2", {"max_order": 2}),
    ],
)
def test_a_recorded_corpus_has_its_recorded_score(name, options, recorded_scores):
    value = bleu(recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]], **options)

    assert value == pytest.approx(recorded_scores["corpus"][name]["score"], abs=1e-9)


def test_the_lectures_worked_example():
    """Of the words of «рыжий кот прилег на лавку» 3 of 5 are right, of its pairs 1 of 4."""
    said, wanted = "рыжий кот прилег на лавку", "рыжий кот лежит на диване"

    metric = BLEU(max_order=2)
    metric.update([said], [[wanted]])
    p1, p2 = metric.scorer.corpus_score([said], [[wanted]]).precisions

    assert (p1, p2) == (pytest.approx(100 * 3 / 5), pytest.approx(100 * 1 / 4))
    # As many words as were wanted: nothing is lost for brevity.
    assert metric.compute()["bleu"] == pytest.approx(100 * math.sqrt(3 / 5 * 1 / 4), abs=1e-9)
    # Without threes and fours in common, sacrebleu counts half and a quarter of a match.
    smoothed = (3 / 5) * (1 / 4) * (1 / 2 / 3) * (1 / 4 / 2)
    assert bleu([said], [[wanted]]) == pytest.approx(100 * smoothed**0.25, abs=1e-9)


def test_every_pair_and_all_of_them_equal_sacrebleu(pairs):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = sacrebleu.corpus_bleu([prediction], [[text] for text in texts]).score
        assert bleu([prediction], [texts]) == pytest.approx(expected, abs=1e-9)
    full = [[*texts, *[texts[0]] * (3 - len(texts))] for texts in references]
    streams = [list(stream) for stream in zip(*full, strict=True)]
    expected = sacrebleu.corpus_bleu(predictions, streams).score
    assert 1 < expected < 99
    assert bleu(predictions, references) == pytest.approx(expected, abs=1e-9)


def test_awkward_texts_equal_sacrebleu(edge_case):
    predictions, references = edge_case
    max_counts = max(map(len, references))
    full = [[*texts, *[texts[0]] * (max_counts - len(texts))] for texts in references]
    streams = [list(stream) for stream in zip(*full, strict=True)]

    expected = sacrebleu.corpus_bleu(predictions, streams).score

    assert bleu(predictions, references) == pytest.approx(expected, abs=1e-9)


def test_case_counts_unless_told_otherwise():
    predictions, references = ["The Cat sat on a mat"], [["the cat sat on a mat"]]

    assert bleu(predictions, references) < 100
    assert bleu(predictions, references, lowercase=True) == pytest.approx(100, abs=1e-9)


def test_what_it_was_given_is_not_changed_later():
    predictions, references = ["a b c d e"], [["a b c d e"]]
    metric = BLEU()
    metric.update(predictions, references)

    metric.update(["x y z w v"], [["p q r s t"]])
    references[0].append("y")

    assert (predictions, references) == (["a b c d e"], [["a b c d e", "y"]])
    assert metric.references == [["a b c d e"], ["p q r s t"]]


def test_its_signature_names_references_case_tokeniser_and_version():
    metric = BLEU(tokenize="intl", lowercase=True)
    metric.update(["a b c d e"], [["a b c d e", "a b c d f"]])
    metric.compute()

    assert metric.signature() == (
        f"nrefs:2|case:lc|eff:no|tok:intl|smooth:exp|version:{sacrebleu.__version__}"
    )


def test_its_signature_can_be_asked_for_before_its_value():
    metric = BLEU()
    metric.update(["a b c d e"], [["a b c d e"]])

    assert metric.signature() == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    )


def test_its_signature_speaks_of_all_that_was_gathered():
    metric = BLEU()
    metric.update(["a b c d e"], [["a b c d e"]])
    metric.compute()
    metric.update(["a b c d e"], [["a b c d e", "a b c d f"]])

    assert metric.signature().startswith("nrefs:var|")


def test_its_signature_tells_an_unusual_order():
    metric = BLEU(max_order=2)
    metric.update(["a b c d e"], [["a b c d e"]])

    assert metric.signature().startswith("order:2|nrefs:1|")
