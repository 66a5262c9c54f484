"""Generation does not depend on torch's default device.

The default device is 'meta': a tensor that is created without a device has no values.
"""

import copy

import pytest
import torch

import zoo
from zoo.generation import loop, stream_tokens
from zoo.plugin import DecodeRequest, GenerationInputs, Memory, decode
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.min_p import MinP
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

NARROW = [Greedy(), Temperature(), TopK(k=3), TopP(p=0.8), MinP(p=0.2), Typical(mass=0.8)]
ALL = [*NARROW, Beam(), DiverseBeam()]
PROMPT = torch.tensor([[1, 3, 4]] * 2 + [[1, 5, 0]] * 3)
FILTERS = [RepetitionPenalty(), NoRepeatNgram(n=2)]


@pytest.fixture(params=["reference", "fast"])
def path(request, monkeypatch):
    """Use the loop without and with accelerations."""
    monkeypatch.setattr(loop, "is_accelerated", lambda part: request.param == "fast")


def make_inputs(prompt):
    torch.manual_seed(4)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4).eval()
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    summary = torch.randn(5, 4)
    memory = Memory(summary[:, None], torch.ones(5, 1, dtype=torch.bool), summary)
    return GenerationInputs(decoder, memory, bos=1, eos=2, pad=0, prompt=prompt)


def make_request(sampler, filters=()):
    generator = torch.Generator("cpu").manual_seed(0)
    return DecodeRequest(sampler=sampler, max_length=9, filters=filters, generator=generator)


@pytest.mark.parametrize("filters", [[], FILTERS], ids=["plain", "filtered"])
@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["no-prompt", "prompt"])
@pytest.mark.parametrize("sampler", ALL, ids=lambda sampler: sampler.name)
def test_decoding(sampler, prompt, filters, path):
    inputs = make_inputs(prompt)
    expected = decode(inputs, make_request(sampler, filters))
    with torch.device("meta"):
        found = decode(inputs, make_request(sampler, filters))
    assert torch.equal(found.tokens, expected.tokens)
    assert torch.equal(found.scores, expected.scores)


@pytest.mark.parametrize("sampler", NARROW, ids=lambda sampler: sampler.name)
def test_streaming(sampler, path):
    inputs = make_inputs(None)
    expected = list(stream_tokens(inputs, make_request(sampler)))
    with torch.device("meta"):
        found = list(stream_tokens(inputs, make_request(sampler)))
    assert torch.equal(torch.cat(found), torch.cat(expected))


@pytest.mark.parametrize("sampler", [TopK(k=3), TopP(p=0.8), MinP(p=0.2)], ids=lambda s: s.name)
@torch.no_grad()
def test_samples_of_a_large_vocabulary(sampler):
    logprobs, scores = torch.randn(2, 1, 5000).log_softmax(dim=-1), torch.zeros(2, 1)
    for each in (sampler, zoo.accelerate(copy.copy(sampler))):
        expected = each.select(logprobs, scores, torch.Generator("cpu").manual_seed(0))
        probs = each.distribution(logprobs)
        with torch.device("meta"):
            found = each.select(logprobs, scores, torch.Generator("cpu").manual_seed(0))
            torch.testing.assert_close(each.distribution(logprobs), probs)
        assert torch.equal(found.tokens, expected.tokens)
        assert torch.equal(found.scores, expected.scores)


def test_the_pipeline():
    model = zoo.compose("transformer-tiny").eval()
    options = {"sampler": "beam", "max_length": 9}
    expected = zoo.generate(model, [[3, 4, 5], [6, 7]], **options)
    with torch.device("meta"):
        assert zoo.generate(model, [[3, 4, 5], [6, 7]], **options) == expected
