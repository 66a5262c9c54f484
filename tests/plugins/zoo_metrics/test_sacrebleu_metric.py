"""BLEU, chrF and TER compared with sacrebleu."""

import pytest
import sacrebleu

from zoo_metrics.bleu import BLEU
from zoo_metrics.chrf import ChrF
from zoo_metrics.ter import TER

sacrebleu_metrics = pytest.mark.parametrize(
    ("metric", "corpus_score"),
    [
        (BLEU, sacrebleu.corpus_bleu),
        (ChrF, sacrebleu.corpus_chrf),
        (TER, sacrebleu.corpus_ter),
    ],
    ids=["bleu", "chrf", "ter"],
)
RECORDED = [
    ("BLEU/13a", BLEU, {}),
    ("BLEU/13a_lc", BLEU, {"lowercase": True}),
    ("BLEU/intl", BLEU, {"tokenize": "intl"}),
    ("BLEU/none", BLEU, {"tokenize": "none"}),
    ("BLEU/char", BLEU, {"tokenize": "char"}),
    ("BLEU/13a_maxorder2", BLEU, {"max_order": 2}),
    ("chrF2", ChrF, {}),
    ("chrF2++", ChrF, {"word_order": 2}),
    ("TER", TER, {}),
]


def streams(references: list[list[str]]) -> list[list[str | None]]:
    """Return one list per reference index, with None for missing references."""
    longest = max(map(len, references))
    return [[texts[k] if k < len(texts) else None for texts in references] for k in range(longest)]


@sacrebleu_metrics
def test_each_pair_and_the_corpus_match_sacrebleu(metric, corpus_score, pairs, score):
    predictions, references = pairs
    for prediction, texts in zip(predictions, references, strict=True):
        expected = corpus_score([prediction], [[text] for text in texts]).score
        assert score(metric(), [prediction], [texts]) == pytest.approx(expected, abs=1e-9)
    expected = corpus_score(predictions, streams(references)).score
    assert 1 < expected < 99
    assert score(metric(), predictions, references) == pytest.approx(expected, abs=1e-9)


@sacrebleu_metrics
def test_edge_cases_match_sacrebleu(metric, corpus_score, edge_case, score):
    expected = corpus_score(edge_case[0], streams(edge_case[1])).score

    assert score(metric(), *edge_case) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "metric", "options"), RECORDED, ids=[r[0] for r in RECORDED])
def test_a_recorded_corpus_has_its_recorded_score_and_signature(
    name, metric, options, recorded_scores, score
):
    built, recorded = metric(**options), recorded_scores["corpus"][name]
    value = score(built, recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]])

    assert value == pytest.approx(recorded["score"], abs=1e-9)
    signature = recorded["signature"].replace("2.6.0", sacrebleu.__version__)
    assert built.signature().endswith(signature)


@pytest.mark.parametrize("metric", [BLEU, ChrF, TER], ids=lambda cls: cls.name)
def test_signature_includes_the_references_of_all_updates(metric):
    built = metric()
    built.update(["a b c d e"], [["a b c d e"]])
    assert built.signature().startswith("nrefs:1|")
    built.update(["a b c d e"], [["a b c d e", "a b c d f"]])
    assert built.signature().startswith("nrefs:var|")
