import pytest
import sacrebleu

from zoo_metrics.ter import TER


def streams(references: list[list[str]]) -> list[list[str | None]]:
    most = max(map(len, references))
    return [[texts[k] if k < len(texts) else None for texts in references] for k in range(most)]


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
    expected = sacrebleu.corpus_ter(predictions, streams(references)).score
    assert 1 < expected < 99
    assert score(TER(), predictions, references) == pytest.approx(expected, abs=1e-9)


def test_awkward_texts_equal_sacrebleu(edge, score):
    expected = sacrebleu.corpus_ter(edge[0], streams(edge[1])).score

    assert score(TER(), *edge) == pytest.approx(expected, abs=1e-9)


def test_a_recorded_corpus_has_its_recorded_score_and_signature(recorded, score):
    metric = TER()
    value = score(metric, recorded["hyp"], [[text] for text in recorded["ref"]])

    assert value == pytest.approx(recorded["corpus"]["TER"]["score"], abs=1e-9)
    before = recorded["corpus"]["TER"]["signature"].replace("2.6.0", sacrebleu.__version__)
    assert metric.signature() == before


def test_case_and_punctuation_count_as_told(score):
    assert score(TER(), ["The cat ."], [["the cat ."]]) == 0
    assert score(TER(case_sensitive=True), ["The cat ."], [["the cat ."]]) > 0
    assert score(TER(), ["the cat"], [["the cat ."]]) > 0
    assert score(TER(no_punct=True), ["the cat"], [["the cat ."]]) == 0
    assert score(TER(normalized=True), ["the cat."], [["the cat ."]]) == 0
