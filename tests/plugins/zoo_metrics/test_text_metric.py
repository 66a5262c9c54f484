"""Tests of all text metrics."""

import random
import sys

import pytest

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics import zoo_components
from zoo_metrics.bleu import BLEU
from zoo_metrics.cer import CER
from zoo_metrics.chrf import ChrF
from zoo_metrics.nist import NIST
from zoo_metrics.ribes import RIBES
from zoo_metrics.rouge_google import ROUGEGoogle
from zoo_metrics.ter import TER
from zoo_metrics.wer import WER

TEXT = [cls for cls in zoo_components() if cls.consumes == "text"]
LIBRARY = {
    "bleu": ("sacrebleu.metrics.bleu", "sacrebleu"),
    "chrf": ("sacrebleu.metrics.chrf", "sacrebleu"),
    "ter": ("sacrebleu.metrics.ter", "sacrebleu"),
    "rouge-google": ("rouge_score.rouge_scorer", "rouge-score"),
    "meteor-2005": ("nltk.stem.porter", "nltk"),
    "meteor-1.5": ("nltk.stem.snowball", "nltk"),
    "ribes": ("nltk.translate.ribes_score", "nltk"),
    "wer": ("jiwer", "jiwer"),
    "cer": ("jiwer", "jiwer"),
}

all_text_metrics = pytest.mark.parametrize("metric", TEXT, ids=lambda cls: cls.name)


@all_text_metrics
def test_unequal_counts_raise(metric):
    with pytest.raises(ZooError, match=f"{metric.name}.*2 predictions.*1 references"):
        metric().update(["a", "b"], [["a"]])


@all_text_metrics
@pytest.mark.parametrize("references", [["a text, not a list of them"], [[]], [[["a", "list"]]]])
def test_a_reference_that_is_not_a_list_of_texts_raises(metric, references):
    with pytest.raises(ZooError, match=f"{metric.name}.*references of prediction 0.*list"):
        metric().update(["a"], references)


@all_text_metrics
def test_a_prediction_that_is_not_a_text_raises_before_anything_is_added(metric):
    built = metric()
    with pytest.raises(ZooError, match=f"{metric.name}.*prediction 1.*list.*string"):
        built.update(["a b", ["a", "list"]], [["a b"], ["a b"]])
    with pytest.raises(ZooError, match=f"{metric.name}.*no texts"):
        built.compute()


@all_text_metrics
def test_merging_an_empty_metric_changes_nothing(metric):
    predictions, references = metric().example(6, random.Random(2))
    full = metric()
    full.update(predictions, references)
    before = full.compute()

    full.merge(metric())
    empty = metric()
    empty.merge(full)

    assert full.compute() == before
    assert empty.compute() == pytest.approx(before, abs=1e-12)


@all_text_metrics
def test_compute_can_be_repeated(metric):
    built = metric()
    built.update(*built.example(6, random.Random(3)))

    assert built.compute() == built.compute()
    assert built.signature() == built.signature()


@all_text_metrics
def test_a_value_is_a_plain_float(metric):
    built = metric()
    built.update(["a b", ""], [["a b c"], [""]])

    assert {type(value) for value in built.compute().values()} == {float}


@all_text_metrics
def test_a_missing_library_raises_with_the_extra(metric, monkeypatch):
    if metric.name not in LIBRARY:
        metric()
        return
    module, library = LIBRARY[metric.name]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"'{metric.name}'.*{library}"):
        metric()


OPTIONS = [
    (BLEU, {"tokenize": "char", "lowercase": True}),
    (BLEU, {"tokenize": "intl", "max_order": 2}),
    (ChrF, {"word_order": 2, "whitespace": True}),
    (ChrF, {"beta": 1, "char_order": 3, "lowercase": True}),
    (TER, {"normalized": True, "no_punct": True, "asian_support": True}),
    (TER, {"case_sensitive": True}),
    (ROUGEGoogle, {"stem": True}),
    (ROUGEGoogle, {"tokenize": "words"}),
    (NIST, {"max_order": 2, "lowercase": True}),
    (RIBES, {"alpha": 0.5, "beta": 0.3, "lowercase": True}),
    (WER, {"lowercase": True}),
    (CER, {"lowercase": True}),
    *((cls, {}) for cls in TEXT),
]


@pytest.mark.parametrize(("metric", "options"), OPTIONS)
def test_compute_matches_the_reference_computation(metric, options, pairs):
    corpus = pairs[0][:60], pairs[1][:60]
    built = metric(**options)
    built.update(*corpus)

    assert built.compute() == pytest.approx(built.reference(*corpus), abs=1e-9)


@all_text_metrics
def test_compute_matches_the_reference_computation_on_edge_cases(metric, edge_case):
    built = metric()
    built.update(*edge_case)

    assert built.compute() == pytest.approx(built.reference(*edge_case), abs=1e-9)
