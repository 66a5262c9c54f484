"""`Model.generate` builds the inputs and the request of `decode`."""

import pytest
import torch

import zoo
from zoo.generation import stream_tokens
from zoo.plugin import DecodeRequest, decode
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram
from zoo_sampling.temperature import Temperature


@pytest.fixture
def model():
    return zoo.compose("bahdanau-reversal", seed=0).eval()


def test_model_generate_equals_decode_and_stream_tokens(model):
    batch = model.example(3, 5, torch.Generator().manual_seed(0))
    options = {"max_length": 6, "filters": [NoRepeatNgram(n=1)]}

    def request():
        generator = torch.Generator().manual_seed(1)
        return DecodeRequest(sampler=Temperature(), generator=generator, **options)

    generator = torch.Generator().manual_seed(1)
    output = model.generate(batch, Temperature(), generator=generator, **options)

    inputs = model.prepare_generation(batch)
    assert torch.equal(decode(inputs, request()).tokens, output.tokens)
    steps = list(stream_tokens(inputs, request()))
    assert torch.equal(torch.stack(steps, dim=-1), output.tokens)


def test_model_generate_computes_no_gradients(model):
    grad_enabled = []
    model.encoder.register_forward_hook(lambda *_: grad_enabled.append(torch.is_grad_enabled()))

    model.generate(model.example(2, 3), Greedy(), max_length=2)

    assert grad_enabled == [False]


@pytest.mark.parametrize("max_length", [0, -1])
def test_max_length_must_be_positive(max_length):
    with pytest.raises(zoo.ZooError, match=f"max_length is {max_length};.* 1"):
        DecodeRequest(sampler=Greedy(), max_length=max_length)


@pytest.mark.parametrize("sampler", [None, "greedy"])
def test_a_sampler_that_is_not_built_raises(model, sampler):
    with pytest.raises(zoo.ZooError, match=r"sampler is of type \w+; expected a Sampler"):
        model.generate(model.example(2, 3), sampler, max_length=2)
