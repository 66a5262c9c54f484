"""The check of the benchmark compares outputs with those of the original."""

import pytest
import torch

import zoo
from zoo_lab.benchmarks.huggingface.benchmark_imported import ImportedModel


@pytest.mark.parametrize("architecture", ["llama", "bert", "whisper"])
def test_another_weight_fails_the_check(architecture):
    pytest.importorskip("transformers")
    benchmark = ImportedModel(**{**ImportedModel.test_params, "architecture": architecture})
    benchmark.prepare(torch.device("cpu"))
    benchmark.check()
    with torch.no_grad():
        for weight in benchmark.theirs.parameters():
            weight.mul_(1.5)
    with pytest.raises(AssertionError, match="outputs differ by"):
        benchmark.check()


@pytest.mark.parametrize("architecture", ["llama", "whisper"])
def test_both_generate_as_many_tokens(architecture):
    pytest.importorskip("transformers")
    benchmark = ImportedModel(
        **{**ImportedModel.test_params, "architecture": architecture, "part": "generate"}
    )
    benchmark.prepare(torch.device("cpu"))
    assert [len(ranked[0].tokens) for ranked in benchmark.run()] == [3, 3]
    for prepare in benchmark.peers().values():
        prompt = 4 if architecture == "llama" else 0
        assert prepare()().shape == (2, prompt + 3)


def test_bert_does_not_generate():
    with pytest.raises(zoo.ZooError, match="'bert' does not generate"):
        ImportedModel(architecture="bert", part="generate")
