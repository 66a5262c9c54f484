"""WER and CER compared with jiwer."""

import jiwer
import pytest

from zoo_metrics.cer import CER
from zoo_metrics.wer import WER

edit_rates = pytest.mark.parametrize(
    ("metric", "rate"), [(WER, jiwer.wer), (CER, jiwer.cer)], ids=["wer", "cer"]
)


@edit_rates
def test_each_pair_matches_jiwer(metric, rate, pairs, score):
    for prediction, texts in zip(*pairs, strict=True):
        expected = min(rate(text, prediction) for text in texts)
        assert score(metric(), [prediction], [texts]) == pytest.approx(expected, abs=1e-12)


@edit_rates
def test_a_corpus_with_one_reference_matches_jiwer(metric, rate, pairs, score):
    predictions, firsts = pairs[0], [texts[0] for texts in pairs[1]]

    expected = rate(firsts, predictions)

    assert 0.1 < expected < 1
    value = score(metric(), predictions, [[text] for text in firsts])
    assert value == pytest.approx(expected, abs=1e-12)


@edit_rates
def test_edge_cases_match_jiwer(metric, rate, edge_case, score):
    firsts = [texts[0] for texts in edge_case[1]]

    value = score(metric(), edge_case[0], [[text] for text in firsts])

    assert value == pytest.approx(rate(firsts, edge_case[0]), abs=1e-12)


@edit_rates
def test_a_recorded_corpus_matches_jiwer(metric, rate, recorded_scores, score):
    value = score(metric(), recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    expected = rate(recorded_scores["ref"], recorded_scores["hyp"])
    assert value == pytest.approx(expected, abs=1e-12)
