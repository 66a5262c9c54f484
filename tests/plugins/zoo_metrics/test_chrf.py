import pytest
import sacrebleu

from zoo_metrics.chrf import ChrF


def transpose_references(references: list[list[str]]) -> list[list[str | None]]:
    max_references = max(map(len, references))
    return [
        [texts[k] if k < len(texts) else None for texts in references]
        for k in range(max_references)
    ]


def test_one_word_by_hand(score):
    # 2 of 3 letters and 1 of 2 letter pairs, both ways.
    value = score(ChrF(char_order=2), ["abc"], [["abd"]])

    assert value == pytest.approx(100 * (2 / 3 + 1 / 2) / 2, abs=1e-9)


@pytest.mark.parametrize("beta", [1, 2, 3])
def test_recall_counts_beta_times_as_much_by_hand(beta, score):
    P, R = 1, 1 / 2
    expected = 100 * (1 + beta**2) * P * R / (beta**2 * P + R)

    assert score(ChrF(char_order=1, beta=beta), ["ab"], [["abcd"]]) == pytest.approx(expected)


def test_every_pair_and_all_of_them_equal_sacrebleu(pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = sacrebleu.sentence_chrf(prediction, texts).score
        assert score(ChrF(), [prediction], [texts]) == pytest.approx(expected, abs=1e-9)
    expected = sacrebleu.corpus_chrf(predictions, transpose_references(references)).score
    assert 1 < expected < 99
    assert score(ChrF(), predictions, references) == pytest.approx(expected, abs=1e-9)


def test_awkward_texts_equal_sacrebleu(edge_case, score):
    expected = sacrebleu.corpus_chrf(edge_case[0], transpose_references(edge_case[1])).score

    assert score(ChrF(), *edge_case) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "options"), [("chrF2", {}), ("chrF2++", {"word_order": 2})])
def test_a_recorded_corpus_has_its_recorded_score_and_signature(
    name, options, recorded_scores, score
):
    metric = ChrF(**options)
    value = score(metric, recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    assert value == pytest.approx(recorded_scores["corpus"][name]["score"], abs=1e-9)
    before = recorded_scores["corpus"][name]["signature"].replace("2.6.0", sacrebleu.__version__)
    assert metric.signature() == before


def test_spaces_and_case_count_as_told(score):
    assert score(ChrF(), ["ab c"], [["a bc"]]) == 100
    assert score(ChrF(whitespace=True), ["ab c"], [["a bc"]]) < 100
    assert score(ChrF(), ["AB"], [["ab"]]) == 0
    assert score(ChrF(lowercase=True), ["AB"], [["ab"]]) == 100


def test_its_signature_tells_an_unusual_beta():
    metric = ChrF(beta=3, lowercase=True)
    metric.update(["a"], [["a"]])

    assert metric.signature() == (
        f"beta:3|nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}"
    )
