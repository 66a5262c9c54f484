"""Removal of items that are done from a batch."""

import pytest
import torch

from zoo.generation import loop
from zoo.plugin import DecodeRequest, GenerationInputs, Memory, State, decode
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_fast.generation.compaction import Compaction
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK


class CountingDecoder(TinyDecoder):
    """Records the number of rows of each step."""

    def step(self, tokens, state):
        self.rows.append(len(tokens))
        return super().step(tokens, state)


@pytest.fixture(autouse=True)
def fast_loop(monkeypatch):
    """Accelerate the loop, although no acceleration serves the tiny decoder."""
    monkeypatch.setattr(loop, "is_accelerated", lambda part: True)


@pytest.fixture
def decoder():
    torch.manual_seed(4)
    decoder = CountingDecoder(embedding=TinyEmbedding(), summary_dim=4)
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    with torch.no_grad():  # where its tanh saturates, scores are equal but for rounding
        decoder.embedding.table.weight.mul_(0.3)
    return decoder


def run(decoder, sampler, prompt=None, filters=()):
    decoder.rows = []
    summary = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    memory = Memory(summary[:, None], torch.ones(9, 1, dtype=torch.bool), summary)
    inputs = GenerationInputs(decoder, memory, bos=1, eos=2, pad=0, prompt=prompt)
    return decode(inputs, DecodeRequest(sampler=sampler, max_length=12, filters=filters))


PROMPT = torch.tensor([[1, 3, 4]] * 4 + [[1, 5, 0]] * 5)


@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["no-prompt", "prompt"])
@pytest.mark.parametrize("filters", [[], [RepetitionPenalty()]], ids=["plain", "filtered"])
@pytest.mark.parametrize("sampler", [Greedy(), Beam(), DiverseBeam()], ids=lambda s: s.name)
def test_the_outputs_are_those_of_the_whole_batch(decoder, sampler, filters, prompt, monkeypatch):
    found, rows = run(decoder, sampler, prompt, filters), decoder.rows
    monkeypatch.setattr(Compaction, "reduce", lambda *_: None)
    expected = run(decoder, sampler, prompt, filters)
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.scores, expected.scores)
    assert len(rows) == len(decoder.rows)
    if sampler.name == "greedy":
        assert rows[-1] < decoder.rows[-1]


def test_batches_of_random_samplers_are_not_reduced(decoder):
    run(decoder, TopK(k=3))
    assert set(decoder.rows) == {9}


class KeepingSampler(Greedy):
    """A sampler of a class that is not known."""


def test_batches_of_unknown_samplers_are_not_reduced(decoder):
    run(decoder, KeepingSampler())
    assert set(decoder.rows) == {9}


class OtherState(State):
    """A state of a class that is not known."""


def test_batches_with_unknown_states_are_not_reduced(decoder, monkeypatch):
    start = decoder.start
    monkeypatch.setattr(
        decoder, "start", lambda *args, **kwargs: OtherState(**vars(start(*args, **kwargs)))
    )
    run(decoder, Greedy())
    assert set(decoder.rows) == {9}
