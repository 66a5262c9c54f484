"""METEOR, RIBES and ROUGE compared with their libraries."""

import pytest
from nltk.translate.meteor_score import meteor_score
from nltk.translate.ribes_score import sentence_ribes
from rouge_score.rouge_scorer import RougeScorer

from zoo_metrics.meteor_2005 import METEOR2005
from zoo_metrics.ribes import RIBES
from zoo_metrics.rouge_google import ROUGEGoogle


class NoSynonyms:
    """Replacement for WordNet, whose corpus is not available."""

    def synsets(self, word):
        return []


def nltk_meteor(prediction, texts, **options):
    references = [text.split() for text in texts]
    score = meteor_score(references, prediction.split(), wordnet=NoSynonyms(), **options)
    return {"meteor-2005": score}


def nltk_ribes(prediction, texts, **options):
    references = [text.split() for text in texts]
    return {"ribes": sentence_ribes(references, prediction.split(), **options)}


def rouge_score(prediction, texts, *, stem=False):
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem)
    names = {"rouge1": "rouge-1", "rouge2": "rouge-2", "rougeL": "rouge-l"}
    scores = scorer.score_multi(texts, prediction)
    return {name: scores[key].fmeasure for key, name in names.items()}


mean_metrics = pytest.mark.parametrize(
    ("metric", "expected_score", "options"),
    [
        (METEOR2005, nltk_meteor, {}),
        (METEOR2005, nltk_meteor, {"alpha": 0.5, "beta": 1.0, "gamma": 0.2}),
        (RIBES, nltk_ribes, {}),
        (RIBES, nltk_ribes, {"alpha": 0.5, "beta": 0.3}),
        (ROUGEGoogle, rouge_score, {}),
        (ROUGEGoogle, rouge_score, {"stem": True}),
    ],
)


def compute(metric, predictions, references):
    metric.update(predictions, references)
    return metric.compute()


def mean(scores):
    return {name: sum(score[name] for score in scores) / len(scores) for name in scores[0]}


@mean_metrics
def test_each_pair_and_the_corpus_match_the_library(metric, expected_score, options, pairs):
    scores = []
    for prediction, texts in zip(*pairs, strict=True):
        scores.append(expected_score(prediction, texts, **options))
        value = compute(metric(**options), [prediction], [texts])
        assert value == pytest.approx(scores[-1], abs=1e-12)
    assert all(0.1 < value < 0.9 for value in mean(scores).values())
    assert compute(metric(**options), *pairs) == pytest.approx(mean(scores), abs=1e-9)


@mean_metrics
def test_edge_cases_match_the_library(metric, expected_score, options, edge_case):
    scores = [expected_score(p, texts, **options) for p, texts in zip(*edge_case, strict=True)]

    assert compute(metric(**options), *edge_case) == pytest.approx(mean(scores), abs=1e-9)


@mean_metrics
def test_a_recorded_corpus_matches_the_library(metric, expected_score, options, recorded_scores):
    corpus = recorded_scores["hyp"], [[text] for text in recorded_scores["ref"]]
    scores = [expected_score(p, texts, **options) for p, texts in zip(*corpus, strict=True)]

    assert compute(metric(**options), *corpus) == pytest.approx(mean(scores), abs=1e-9)
