import pytest
import sacrebleu

from zoo_metrics.ter import TER


def transpose_references(references: list[list[str]]) -> list[list[str | None]]:
    max_references = max(map(len, references))
    return [
        [texts[k] if k < len(texts) else None for texts in references]
        for k in range(max_references)
    ]


def test_edits_for_each_word_of_reference_by_hand(score):
    # One word is missing, one wrong, in 4 and 2 words of reference.
    value = score(TER(), ["the cat sat", "a b"], [["the red cat sat"], ["a c"]])

    assert value == pytest.approx(100 * 2 / 6, abs=1e-9)


def test_moving_a_run_of_words_is_one_edit_by_hand(score):
    assert score(TER(), ["c d a b"], [["a b c d"]]) == pytest.approx(100 / 4, abs=1e-9)


def test_edits_to_the_closest_reference_over_the_mean_length_by_hand(score):
    # One edit to the first reference, four to the second; their lengths are 2 and 4.
    assert score(TER(), ["a b"], [["a c", "d e f g"]]) == pytest.approx(100 / 3, abs=1e-9)


def test_every_pair_and_all_of_them_equal_sacrebleu(pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = sacrebleu.sentence_ter(prediction, texts).score
        assert score(TER(), [prediction], [texts]) == pytest.approx(expected, abs=1e-9)
    expected = sacrebleu.corpus_ter(predictions, transpose_references(references)).score
    assert 1 < expected < 99
    assert score(TER(), predictions, references) == pytest.approx(expected, abs=1e-9)


def test_awkward_texts_equal_sacrebleu(edge_case, score):
    expected = sacrebleu.corpus_ter(edge_case[0], transpose_references(edge_case[1])).score

    assert score(TER(), *edge_case) == pytest.approx(expected, abs=1e-9)


def test_a_recorded_corpus_has_its_recorded_score_and_signature(recorded_scores, score):
    metric = TER()
    value = score(metric, recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    assert value == pytest.approx(recorded_scores["corpus"]["TER"]["score"], abs=1e-9)
    before = recorded_scores["corpus"]["TER"]["signature"].replace("2.6.0", sacrebleu.__version__)
    assert metric.signature() == before


def test_case_and_punctuation_count_as_told(score):
    assert score(TER(), ["The cat ."], [["the cat ."]]) == 0
    assert score(TER(case_sensitive=True), ["The cat ."], [["the cat ."]]) > 0
    assert score(TER(), ["the cat"], [["the cat ."]]) > 0
    assert score(TER(no_punct=True), ["the cat"], [["the cat ."]]) == 0
    assert score(TER(normalized=True), ["the cat."], [["the cat ."]]) == 0
