"""What holds for every metric of texts."""

import random
import sys

import pytest

from zoo import ZooError
from zoo.plugin import MissingExtra
from zoo_metrics import zoo_components

TEXT = [cls for cls in zoo_components() if cls.consumes == "text"]
LIBRARY = {
    "bleu": ("sacrebleu.metrics.bleu", "sacrebleu"),
    "chrf": ("sacrebleu.metrics.chrf", "sacrebleu"),
    "ter": ("sacrebleu.metrics.ter", "sacrebleu"),
    "rouge": ("rouge_score.rouge_scorer", "rouge-score"),
    "meteor": ("nltk.stem.porter", "nltk"),
    "nist": ("nltk.translate.nist_score", "nltk"),
    "ribes": ("nltk.translate.ribes_score", "nltk"),
    "wer": ("jiwer", "jiwer"),
    "cer": ("jiwer", "jiwer"),
}

all_text_metrics = pytest.mark.parametrize("metric", TEXT, ids=lambda cls: cls.name)


@all_text_metrics
def test_unequal_counts_are_refused(metric):
    message = rf"^{metric.name}: 2 predictions, but 1 references$"
    with pytest.raises(ZooError, match=message):
        metric().update(["a", "b"], [["a"]])


@all_text_metrics
@pytest.mark.parametrize("references", [["a text, not a list of them"], [[]], [[["a", "list"]]]])
def test_a_reference_that_is_no_list_of_texts_is_refused(metric, references):
    message = f"^{metric.name} takes a list of one or more reference texts for each prediction$"
    with pytest.raises(ZooError, match=message):
        metric().update(["a"], references)


@all_text_metrics
def test_a_prediction_that_is_no_text_is_refused_and_nothing_is_counted(metric):
    started = metric()
    with pytest.raises(ZooError, match=rf"^{metric.name} takes texts, but a prediction is of type"):
        started.update(["a b", ["a", "list"]], [["a b"], ["a b"]])
    with pytest.raises(ZooError, match=rf"^{metric.name} of no texts has no value$"):
        started.compute()


@all_text_metrics
def test_merging_with_one_that_gathered_nothing_changes_nothing(metric):
    predictions, references = metric().example(6, random.Random(2))
    whole = metric()
    whole.update(predictions, references)
    before = whole.compute()

    whole.merge(metric())
    empty = metric()
    empty.merge(whole)

    assert whole.compute() == before
    assert empty.compute() == pytest.approx(before, abs=1e-12)


@all_text_metrics
def test_asking_twice_gives_the_same_answer(metric):
    one = metric()
    one.update(*one.example(6, random.Random(3)))

    assert one.compute() == one.compute()
    assert one.signature() == one.signature()


@all_text_metrics
def test_a_value_is_a_plain_float(metric):
    one = metric()
    one.update(["a b", ""], [["a b c"], [""]])

    assert {type(value) for value in one.compute().values()} == {float}


@all_text_metrics
def test_without_its_library_it_says_what_to_install(metric, monkeypatch):
    if metric.name not in LIBRARY:
        metric()
        return
    module, library = LIBRARY[metric.name]
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"^metric '{metric.name}' needs {library}, which is not installed; install it with"
    with pytest.raises(MissingExtra, match=message):
        metric()
