import math

import pytest
import torch

from zoo import ZooError, load_spec
from zoo.errors import SpecError
from zoo.interfaces.sampler import _race, _search_cumulative
from zoo_sampling.logits import apply_temperature, keep_tokens
from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

INVALID = [
    (Temperature, {"temperature": 0.0}, "temperature is 0.0"),
    (Temperature, {"temperature": -1.0}, "temperature is -1.0"),
    (Temperature, {"temperature": math.nan}, "temperature is nan"),
    (Temperature, {"temperature": math.inf}, "temperature is inf"),
    (TopK, {"k": 0}, "k is 0"),
    (TopK, {"temperature": 0.0}, "temperature is 0.0"),
    (TopP, {"p": 0.0}, "p is 0.0"),
    (TopP, {"p": 1.5}, "p is 1.5"),
    (TopP, {"temperature": -2.0}, "temperature is -2.0"),
    (MinP, {"p": 0.0}, "p is 0.0"),
    (MinP, {"temperature": 0.0}, "temperature is 0.0"),
    (Typical, {"mass": 0.0}, "mass is 0.0"),
    (Typical, {"temperature": 0.0}, "temperature is 0.0"),
]


@pytest.mark.parametrize(("cls", "parameters", "message"), INVALID)
def test_invalid_parameters_raise(cls, parameters, message):
    with pytest.raises(ZooError, match=message):
        cls(**parameters)


@pytest.mark.parametrize(("cls", "parameters", "message"), INVALID)
def test_invalid_parameters_in_a_spec_raise(cls, parameters, message):
    (key, value) = next(iter(parameters.items()))
    with pytest.raises(SpecError, match=rf"sampler\.{key}: is .* should be"):
        load_spec("bahdanau-reversal", overrides=[f"sampler={{type: {cls.name}, {key}: {value}}}"])


def test_temperature_divides_and_keeps_minus_inf():
    logprobs = torch.tensor([0.5, 0.25, 0.25, 0.0]).log()

    cold = apply_temperature(logprobs, 0.5)

    torch.testing.assert_close(
        cold.softmax(dim=-1), torch.tensor([4 / 6, 1 / 6, 1 / 6, 0.0]), rtol=0, atol=1e-6
    )
    assert apply_temperature(logprobs, 1.0) is logprobs
    assert apply_temperature(logprobs, 1e-45).softmax(dim=-1).tolist() == [1, 0, 0, 0]


def test_kept_tokens_have_all_the_mass():
    logprobs = torch.tensor([0.5, 0.2, 0.3]).log()

    probs = keep_tokens(logprobs, torch.tensor([True, False, True]))

    torch.testing.assert_close(probs, torch.tensor([0.625, 0.0, 0.375]), rtol=0, atol=1e-6)


def test_scores_use_the_logprobs_before_temperature():
    logprobs = torch.tensor([[[0.5, 0.25, 0.25]]]).log()

    selection = TopK(k=1, temperature=0.1).select(logprobs, torch.tensor([[-1.0]]))

    assert selection.tokens.tolist() == selection.parents.tolist() == [[0]]
    torch.testing.assert_close(selection.scores, torch.tensor([[-1.0 + math.log(0.5)]]))


def test_rows_are_sampled_independently():
    generator = torch.Generator().manual_seed(0)
    logprobs = torch.full((1000, 2, 4), 0.25).log()

    tokens = Temperature().select(logprobs, torch.zeros(1000, 2), generator).tokens

    # 16 pairs, 62.5 expected each; 37.7 is the 99.9th percentile of chi-square with 15 degrees.
    counts = torch.bincount(tokens[:, 0] * 4 + tokens[:, 1], minlength=16).double()
    assert ((counts - 62.5) ** 2 / 62.5).sum() < 37.7


@pytest.mark.parametrize(
    ("method", "source"), [(_race, "Tensor.exponential_"), (_search_cumulative, "rand")]
)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_extreme_noise_samples_no_impossible_token(monkeypatch, method, source, noise):
    def constant(*shape, dtype=torch.float32, generator=None, device=None):
        like = shape[0] if isinstance(shape[0], torch.Tensor) else torch.empty(shape, dtype=dtype)
        return like.fill_(noise)

    owner, name = (torch.Tensor, source[7:]) if source.startswith("Tensor") else (torch, source)
    monkeypatch.setattr(owner, name, constant)

    assert method(torch.tensor([[0.0, 0.0, 0.3, 0.0]]), None).tolist() == [2]
