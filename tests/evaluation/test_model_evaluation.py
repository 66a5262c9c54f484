"""`evaluate_model` against computations written by hand."""

import math
import pickle

import jiwer
import pytest
import sacrebleu
import torch
from kits.evaluation_kit import ListBatches, random_tokens, varied_translator, word_tokenizer
from kits.tones_kit import make_tones
from torch import tensor

import zoo
from zoo.errors import ZooError
from zoo.evaluation.generating import build_generation
from zoo.evaluation.model_evaluation import (
    evaluate_model,
    evaluate_share,
    evaluation_result,
    merge_shares,
)
from zoo.registry.component_registry import default_registry

VOCAB = 16


def build(kind, name, **params):
    return default_registry().get(kind, name).cls(**params)


@pytest.fixture(scope="module")
def translator():
    """A model, its batches of size 3, and the texts that it generates one by one."""
    model = varied_translator()
    generator = torch.Generator().manual_seed(0)
    sources = random_tokens(8, VOCAB, generator)
    texts = []
    for source in sources:
        (best,), *_ = zoo.generate(model, [source.tolist()], sampler="greedy", max_length=9)
        texts.append(best.text)
    targets = [tensor([1, *t.tolist(), 2]) for t in random_tokens(8, VOCAB, generator)]
    examples = [{"source": s, "target": t} for s, t in zip(sources, targets, strict=True)]
    references = [[f"{text} w5", f"w4 {text}"] for text in texts]
    return model, ListBatches(examples, references), texts


def evaluate(model, batches, *metrics, **options):
    options = {"sampler": build("sampler", "greedy"), "max_length": 9, **options}
    return evaluate_model(model, batches, [build("metric", name) for name in metrics], **options)


def test_bleu_of_a_translator_equals_sacrebleu(translator):
    model, batches, texts = translator
    result = evaluate(model, batches, "bleu", "chrf")
    references = list(zip(*batches._references, strict=True))
    assert result.hypotheses == texts
    assert result.references == batches._references
    assert result.values["bleu"] == pytest.approx(sacrebleu.corpus_bleu(texts, references).score)
    assert result.values["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, references).score)
    assert 0 < result.values["bleu"] < 100
    assert result.signatures["bleu"].startswith("nrefs:2|case:mixed|eff:no|tok:13a")
    assert result.examples == 8


def test_the_loss_is_the_mean_over_all_tokens(translator):
    model, batches, _ = translator
    objective = build("objective", "cross-entropy")
    result = evaluate(model, batches, objective=objective)
    total, count = 0.0, 0
    for example in batches.examples:
        with torch.no_grad():
            outputs = model.eval()({key: value[None] for key, value in example.items()})
        total += float(torch.nn.functional.cross_entropy(*_flat(outputs), reduction="sum"))
        count += len(example["target"]) - 1
    assert result.values == {"loss": pytest.approx(total / count, rel=1e-6)}
    assert result.hypotheses == []


def _flat(outputs):
    return outputs.logits[0], outputs.targets[0]


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_results_do_not_depend_on_the_batch_size(translator, size):
    model, batches, texts = translator
    other = ListBatches(batches.examples, batches._references, size=size)
    metrics = ("bleu", "accuracy", "perplexity")
    options = {"objective": build("objective", "cross-entropy")}
    expected, result = (evaluate(model, b, *metrics, **options) for b in (batches, other))
    assert result.hypotheses == texts
    assert result.values == pytest.approx(expected.values, rel=1e-5)


def test_accuracy_of_a_classifier():
    model = zoo.compose("vit-tiny", seed=1)
    generator = torch.Generator().manual_seed(0)
    whole = model.example(7, 4, generator)
    examples = [{key: value[i] for key, value in whole.items()} for i in range(7)]
    with torch.no_grad():
        predicted = model.eval()(whole).logits[:, 0].argmax(dim=-1)
    examples[0]["target"] = predicted[0]
    expected = sum(int(p == e["target"]) for p, e in zip(predicted, examples, strict=True)) / 7
    result = evaluate(model, ListBatches(examples), "accuracy", "micro-f1", sampler=None)
    assert result.values == {
        "accuracy": pytest.approx(expected),
        "micro-f1": pytest.approx(expected),  # one label per item
    }
    assert result.signatures["accuracy"].endswith("|tokens:argmax")
    texts = evaluate(model, ListBatches(examples, [["0"]] * 7), "accuracy", texts=True)
    assert texts.hypotheses == [str(int(each)) for each in predicted]  # there are no names
    assert not texts.generated


def test_a_node_classifier_is_evaluated_on_the_nodes_of_the_mask():
    model = zoo.compose("gat-tiny", seed=0)
    graph = model.example(1, 30, torch.Generator().manual_seed(0))
    graph["mask"] = torch.arange(30)[None] % 3 == 0
    with torch.no_grad():
        predicted = model.eval()(graph).logits.argmax(dim=-1)
    graph["target"] = graph["target"].where(torch.arange(30)[None] % 6 != 0, predicted)
    hits = (predicted == graph["target"])[graph["mask"]]
    batches = ListBatches([{key: value[0] for key, value in graph.items()}])
    result = evaluate(model, batches, "accuracy", sampler=None)
    assert 0 < result.values["accuracy"] < 1
    assert result.values["accuracy"] == pytest.approx(float(hits.float().mean()))


def test_labels_with_a_probability_above_one_half_are_predicted():
    overrides = ["model.multi_label=true", "objective=binary-cross-entropy", "metrics=[micro-f1]"]
    model = zoo.compose("gat-tiny", overrides=overrides)
    graph = model.example(1, 12, torch.Generator().manual_seed(0))
    with torch.no_grad():
        p = model.eval()(graph).logits.sigmoid() > 0.5
    y = graph["target"] > 0
    expected = 2 * int((p & y).sum()) / int(p.sum() + y.sum())
    batches = ListBatches([{key: value[0] for key, value in graph.items()}])
    result = evaluate(model, batches, "micro-f1", sampler=None)
    assert result.values == {"micro-f1": pytest.approx(expected)}


def test_perplexity_of_a_language_model():
    model = zoo.compose("gpt2-tiny", seed=0)
    tokens = random_tokens(5, 30, torch.Generator().manual_seed(0))
    examples = [{"target": row, "mask": torch.ones(len(row), dtype=torch.bool)} for row in tokens]
    nll = []
    for row in tokens:
        with torch.no_grad():
            logits = model.eval()({"target": row[None]}).logits[0]
        nll += torch.nn.functional.cross_entropy(logits, row[1:], reduction="none").tolist()
    result = evaluate(model, ListBatches(examples, size=2), "perplexity", "accuracy")
    assert result.values["perplexity"] == pytest.approx(math.exp(sum(nll) / len(nll)), rel=1e-5)
    assert result.signatures["accuracy"].endswith("|tokens:argmax")  # there are no prompts


def test_word_error_rate_of_a_ctc_model():
    model = zoo.compose("transformer-ctc-tiny", seed=2)
    model.tokenizer = {"target": word_tokenizer(6)}
    waves, labels = make_tones(4, torch.Generator().manual_seed(0), first=1)
    examples = [{"source": w, "target": t} for w, t in zip(waves, labels, strict=True)]
    sampler = build("sampler", "ctc-greedy")
    texts = []
    for wave in waves:
        tokens = model.eval().generate({"source": wave[None]}, sampler, max_length=50).best()[0]
        texts.append(" ".join(f"w{token}" for token in tokens if token > 2))
    references = [["w3 w4 w3"], ["w5"], ["w4 w4"], ["w3"]]
    batches = ListBatches(examples, references, size=2)
    result = evaluate(model, batches, "wer", "sequence-accuracy", sampler=sampler, max_length=50)
    assert result.hypotheses == texts
    flat = [row[0] for row in references]
    assert result.values["wer"] == pytest.approx(jiwer.wer(flat, texts))
    assert result.signatures["sequence-accuracy"].endswith("|tokens:generated")


def test_generated_tokens_are_compared_without_the_end_token(translator):
    model, batches, _ = translator
    examples = []
    for example in batches.examples:
        (best,), *_ = zoo.generate(
            model, [example["source"].tolist()], sampler="greedy", max_length=9
        )
        examples.append({**example, "target": tensor([1, *best.tokens, 2])})
    result = evaluate(model, ListBatches(examples), "accuracy", "sequence-accuracy")
    assert result.values == {"accuracy": 1.0, "sequence-accuracy": 1.0}
    assert result.signatures["accuracy"].endswith("|tokens:generated")


def test_mode_and_random_state_are_restored_and_metrics_do_not_change(translator):
    model, batches, _ = translator
    model.train()
    model.encoder.eval()
    state = torch.get_rng_state()
    metric = build("metric", "accuracy")
    sampler = build("sampler", "temperature", temperature=1.0)
    evaluate_model(model, batches, [metric], sampler=sampler, max_length=5)
    assert model.decoder.training
    assert not model.encoder.training
    assert torch.equal(torch.get_rng_state(), state)
    assert metric.total == 0
    assert all(weight.grad is None for weight in model.parameters())


def test_random_samplers_depend_on_the_seed(translator):
    model, batches, _ = translator
    sampler = build("sampler", "temperature", temperature=3.0)
    runs = [evaluate(model, batches, "bleu", sampler=sampler, seed=s) for s in (0, 0, 7)]
    assert runs[0].hypotheses == runs[1].hypotheses != runs[2].hypotheses


def test_nothing_is_generated_if_no_metric_takes_tokens_or_text(translator, monkeypatch):
    model, batches, _ = translator

    def fail(*args, **kwargs):
        raise AssertionError("generated")

    monkeypatch.setattr(type(model), "generate", fail)
    assert set(evaluate(model, batches, "perplexity").values) == {"perplexity"}


def test_nothing_but_generation_runs_if_only_text_is_needed(translator, monkeypatch):
    model, batches, texts = translator

    def fail(self, batch):
        raise AssertionError("forward")

    monkeypatch.setattr(type(model), "forward", fail)
    assert evaluate(model, batches, texts=True).hypotheses == texts


def test_progress_counts_batches(translator):
    model, batches, _ = translator
    calls = []
    evaluate(model, batches, "perplexity", progress=lambda *call: calls.append(call))
    assert calls == [("evaluating", 1, 3), ("evaluating", 2, 3), ("evaluating", 3, 3)]


def test_errors(translator):
    model, batches, _ = translator
    with pytest.raises(ZooError, match="has no sampler to generate text with"):
        evaluate(model, batches, "bleu", sampler=None)
    with pytest.raises(ZooError, match="there are no examples"):
        evaluate(model, ListBatches([]), "bleu")
    language = zoo.compose("gpt2-tiny")
    texts = ListBatches([{"target": tensor([30, 4, 5])}], [["w4 w5"]])
    with pytest.raises(ZooError, match="generates text from 'prompt', but the batches have 'tar"):
        evaluate(language, texts, "bleu")
    model.tokenizer, saved = None, model.tokenizer
    with pytest.raises(ZooError, match=r"no tokenizer for its outputs.*preprocessing\.target"):
        evaluate(model, batches, "bleu")
    model.tokenizer = saved


METRICS = ("bleu", "wer", "accuracy", "perplexity")


def test_shares_of_two_processes_are_merged_to_the_results_of_one(translator):
    model, batches, texts = translator
    objective = build("objective", "cross-entropy")
    metrics = [build("metric", name) for name in METRICS]
    generation = build_generation(model, build("sampler", "greedy"), (), 9)
    shares = []
    for rank in range(2):
        options = {"texts": False, "seed": 0, "rank": rank, "world": 2, "progress": None}
        share = evaluate_share(model, batches, metrics, objective, generation, **options)
        shares.append(pickle.loads(pickle.dumps(share)))
    assert [share.examples for share in shares] == [5, 3]
    result = evaluation_result(merge_shares(shares), has_loss=True, seconds=0.0)
    expected = evaluate(model, batches, *METRICS, objective=objective)
    assert result.hypotheses == texts
    assert result.references == batches._references
    assert result.values == pytest.approx(expected.values, rel=1e-5)
    assert result.signatures == expected.signatures


def test_values_of_the_same_name_get_a_number(translator):
    model, batches, _ = translator
    result = evaluate(model, batches, "perplexity", "perplexity")
    assert list(result.values) == list(result.signatures) == ["perplexity", "perplexity-2"]


def test_prompts_without_a_padding_token_are_evaluated_one_by_one():
    model = zoo.compose("gpt2-tiny", seed=0)
    model.tokenizer = {"target": word_tokenizer(31)}
    rows = random_tokens(3, 30, torch.Generator().manual_seed(0))
    examples = [
        {"target": row, "prompt": row[:-1], "mask": torch.ones(len(row), dtype=torch.bool)}
        for row in rows
    ]
    references = [["w4"], ["w5"], ["w6"]]
    result = evaluate(model, ListBatches(examples, references, size=1), "chrf", max_length=3)
    expected = zoo.generate(model, [rows[0][:-1].tolist()], sampler="greedy", max_length=3)
    assert result.hypotheses[0] == expected[0][0].text
    with pytest.raises(ZooError, match="prompts of different lengths cannot be in one batch"):
        evaluate(model, ListBatches(examples, references, size=2), "chrf", max_length=3)
