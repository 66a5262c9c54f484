"""Benchmarks of language models: checks fail on wrong tokens, goals hold for the named sizes."""

import runpy
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from benchmark_kit import CPU

from zoo_lab.bench.measuring import StepTime
from zoo_lab.benchmarks.language import BENCHMARKS
from zoo_lab.benchmarks.language.benchmark_decoding_step import DecodingStep
from zoo_lab.benchmarks.language.benchmark_decoding_variants import DecodingVariants
from zoo_lab.benchmarks.language.benchmark_first_token import FirstToken
from zoo_lab.benchmarks.language.benchmark_gpt2_generation import Gpt2Generation
from zoo_lab.benchmarks.language.benchmark_language_training import LanguageTraining
from zoo_lab.benchmarks.language.generation import generate
from zoo_lab.benchmarks.language.llama import SIZES
from zoo_lab.benchmarks.language.token_checks import check_hypotheses


def _prepared(cls, **params):
    benchmark = cls(**{**cls.test_params, **params})
    torch.manual_seed(0)
    benchmark.prepare(CPU)
    return benchmark


def _tokens_and_scores(hypotheses, **changes):
    return [type(each)(**{**vars(each), **changes}) for each in hypotheses]


@pytest.mark.parametrize("change", [{"tokens": [5]}, {"score": -1.0}])
def test_another_token_and_another_score_fail_the_check(change):
    benchmark = _prepared(FirstToken)
    found = benchmark.run()
    check_hypotheses(benchmark.model, benchmark.prompts, found)
    with pytest.raises(AssertionError, match="reference path"):
        check_hypotheses(benchmark.model, benchmark.prompts, _tokens_and_scores(found, **change))


@pytest.mark.parametrize("variant", ["top-k", "penalty"])
def test_a_token_that_the_variant_excludes_fails_the_check(variant):
    benchmark = _prepared(DecodingVariants, variant=variant)
    if variant == "top-k":
        benchmark.sampler.k = 1
    least = _tokens_and_scores(
        generate(benchmark.model, benchmark.prompts, 1, sampler="greedy"), tokens=[0]
    )
    with pytest.raises(AssertionError, match="below the tokens"):
        check_hypotheses(
            benchmark.model,
            benchmark.prompts,
            least,
            sampler=benchmark.sampler,
            filters=benchmark.filters,
        )


def test_prompts_of_the_ragged_variant_have_several_lengths():
    assert [len(p) for p in _prepared(DecodingVariants, variant="ragged").prompts] == [2, 4, 6]


def test_a_decoding_step_is_measured_without_the_prompt():
    benchmark = _prepared(DecodingStep)
    (prepare,) = benchmark.peers().values()
    for timed in (benchmark.timed(), prepare()):
        assert isinstance(timed, StepTime)
        assert timed.steps == benchmark.length
    assert [len(h.tokens) for h in benchmark.timed().long()] == [2 * benchmark.length] * 8
    assert [len(h.tokens) for h in benchmark.timed().short()] == [benchmark.length] * 8


def test_the_bound_of_a_step_is_flat_over_the_batch_of_the_goals():
    bounds = [DecodingStep(batch=batch).bound().bytes for batch in (1, 2, 4, 8, 16, 32, 64, 128)]
    growth = [after / before for before, after in pairwise(bounds)]
    assert max(growth) < 1.1
    assert bounds[0] == pytest.approx(2 * 1.236e9, rel=1e-2)  # the weights of Llama 3.2 1B


def test_goals_hold_for_the_published_sizes_only():
    assert DecodingStep(batch=64).goal().seconds == 1.4e-3
    assert DecodingStep(batch=8, context=4096).goal().seconds == 1.3e-3
    assert DecodingStep(batch=64, size="tiny").goal().seconds is None
    assert Gpt2Generation().goal().seconds == pytest.approx(32 * 256 / 80_000)
    assert Gpt2Generation(batch=1, width=4).goal().seconds == pytest.approx(256 / 3_500)
    assert LanguageTraining(model="bert-base").goal().ratio == 1.15


def test_each_point_of_a_sweep_but_one_row_has_a_goal():
    for cls in BENCHMARKS:
        for name, values in cls.sweep.items():
            for value in values:
                params = value if isinstance(value, dict) else {name: value}
                has_goal = cls(**params).goal() != type(cls(**params).goal())()
                assert has_goal or params.get("batch") == 1, (cls.name, params)


@pytest.mark.parametrize("model", ["llama-tiny", "bert-tiny"])
def test_other_models_are_trained_and_compared(model):
    benchmark = _prepared(LanguageTraining, model=model)
    benchmark.check()
    (prepare,) = benchmark.peers().values()
    with torch.compiler.set_stance("force_eager"):
        prepare()()


def test_the_size_of_a_llama_is_that_of_its_model():
    size = SIZES["tiny"]
    weights = dict(size.build(CPU).named_parameters())
    matrices = sum(weight.numel() for weight in weights.values() if weight.dim() == 2)
    assert matrices == size.weights


def test_the_benchmark_of_first_calls_measures_each_of_them(tmp_path):
    file = Path(__file__).parents[4] / "lab" / "benchmarks" / "first_call.py"
    functions = runpy.run_path(str(file))
    saved = functions["save"]("tiny", CPU, tmp_path / "model")
    loading, times = functions["measure"](saved, "tiny", CPU, rows=2, prompt=4, length=3)
    assert len(times) == functions["CALLS"]
    assert min(loading, *times) > 0
