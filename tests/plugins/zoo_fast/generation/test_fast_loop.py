"""The accelerated decoding loop: when it is used, and its outputs."""

import copy
from functools import partial

import pytest
import torch
from kits.thread_kit import run_in_threads

import zoo
import zoo.generation
from zoo.generation.loop import DecodingLoop
from zoo.plugin import DecodeRequest, reference
from zoo_fast.generation import fast_loop
from zoo_fast.generation.captured_steps import CapturedSteps
from zoo_fast.generation.fast_loop import FastLoop
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.min_p import MinP
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

SAMPLERS = [Greedy(), Beam(), DiverseBeam(), TopK(k=3), TopP(), MinP(), Typical()]
SOURCE = torch.tensor([[3, 4, 5], [6, 7, 0], [5, 5, 3]])


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = zoo.compose("transformer-tiny").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture
def fast_runs(monkeypatch):
    """Count the runs of accelerated loops."""
    runs, run = [], FastLoop.run
    monkeypatch.setattr(FastLoop, "run", lambda self: (runs.append(self), run(self))[1])
    return runs


def generate(model, sampler, filters=()):
    generator = torch.Generator("cpu").manual_seed(0)
    return model.generate(
        {"source": SOURCE}, sampler, max_length=12, generator=generator, filters=filters
    )


@pytest.mark.parametrize("filters", [[], [NoRepeatNgram(n=2)]], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_outputs_equal_those_of_the_reference(model, sampler, filters, fast_runs):
    expected = generate(model, sampler, filters)
    assert not fast_runs
    found = generate(zoo.accelerate(copy.deepcopy(model)), sampler, filters)
    assert len(fast_runs) == 1
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.scores, expected.scores)


class Overwritten(CapturedSteps):
    """Steps whose tensors another call overwrites as soon as it can."""

    def run(self, request, state):
        try:
            yield from super().run(request, state)
        finally:
            assert not self.is_running
            for tensor in self._tensors.values():
                tensor.zero_()


@pytest.mark.parametrize("filters", [[], [NoRepeatNgram(n=2)]], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
def test_outputs_are_copied_before_another_call_uses_the_tensors(
    model, sampler, filters, monkeypatch
):
    made = []

    def make_steps(decoder, request, state, *known):
        made.append(Overwritten(decoder, request, state))
        return made[-1]

    expected = generate(model, sampler, filters)
    monkeypatch.setattr(fast_loop, "captured_steps", make_steps)
    found = generate(zoo.accelerate(copy.deepcopy(model)), sampler, filters)
    assert made
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.scores, expected.scores)


def test_the_switch_turns_it_off(model, fast_runs, monkeypatch):
    zoo.accelerate(model)
    monkeypatch.setenv("ZOO_FAST", "off")
    generate(model, Greedy())
    assert not fast_runs


def test_the_pipeline_accelerates_the_model(model, fast_runs):
    expected = generate(model, Beam(width=2))
    found = zoo.generate(
        model, SOURCE.tolist(), sampler={"type": "beam", "width": 2}, max_length=12
    )
    assert len(fast_runs) == 1
    assert [each.score for each in found[0]] == pytest.approx(expected.scores[0].tolist())


def test_the_sampler_of_the_caller_is_not_changed(model):
    sampler = TopK(k=3)
    generate(zoo.accelerate(model), sampler)
    assert type(sampler) is TopK


def test_a_stream_has_the_tokens_of_the_reference(model):
    inputs = model.prepare_generation({"source": SOURCE})
    request = DecodeRequest(sampler=Greedy(), max_length=12)
    expected = list(zoo.generation.stream_tokens(inputs, request))
    zoo.accelerate(model)
    assert torch.equal(
        torch.cat(list(zoo.generation.stream_tokens(inputs, request))), torch.cat(expected)
    )


def test_the_reference_of_an_accelerated_loop_runs(model):
    loop = DecodingLoop.__new__(DecodingLoop)
    assert reference(zoo.accelerate(loop), "run").func is DecodingLoop.run


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("length", [1, 12])
def test_threads_do_not_share_their_prompts(length, device):
    torch.manual_seed(0)
    model = zoo.compose("transformer-tiny", device=device).eval()
    sources = [[3 + (index + place) % 5 for place in range(6)] for index in range(4)]
    generate = partial(zoo.generate, model, sampler="greedy", filters=[], max_length=length)
    expected = [generate([source]) for source in sources]
    assert len({tuple(best.tokens) for [[best]] in expected}) > 1 or length == 1
    for _ in range(4):
        generate(sources[:1])
    found = run_in_threads([partial(generate, [source]) for source in sources], times=20)
    for results, [[best]] in zip(found, expected, strict=True):
        for [[result]] in results:
            assert result.tokens == best.tokens
            assert result.score == pytest.approx(best.score, rel=1e-3)
