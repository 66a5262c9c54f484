import math

import pytest
import torch

from zoo import ZooError, load_spec
from zoo.errors import SpecError
from zoo.plugin import Sampler
from zoo_sampling.logits import among, apply_temperature
from zoo_sampling.min_p import MinP
from zoo_sampling.temperature import Temperature
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP
from zoo_sampling.typical import Typical

INVALID = [
    (Temperature, {"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
    (Temperature, {"temperature": -1.0}, "temperature is -1.0; it must be above 0"),
    (Temperature, {"temperature": math.nan}, "temperature is nan; it must be above 0"),
    (Temperature, {"temperature": math.inf}, "temperature is inf; it must be above 0"),
    (TopK, {"k": 0}, "k is 0; it must be above 0"),
    (TopK, {"temperature": 0.0}, "temperature is 0.0"),
    (TopP, {"p": 0.0}, "p is 0.0; it must be above 0 and at most 1"),
    (TopP, {"p": 1.5}, "p is 1.5; it must be above 0 and at most 1"),
    (TopP, {"temperature": -2.0}, "temperature is -2.0"),
    (MinP, {"p": 0.0}, "p is 0.0; it must be above 0 and at most 1"),
    (MinP, {"temperature": 0.0}, "temperature is 0.0"),
    (Typical, {"mass": 0.0}, "mass is 0.0; it must be above 0 and at most 1"),
    (Typical, {"temperature": 0.0}, "temperature is 0.0"),
]


@pytest.mark.parametrize(("cls", "parameters", "message"), INVALID)
def test_what_makes_no_distribution_is_refused(cls, parameters, message):
    with pytest.raises(ZooError, match=message):
        cls(**parameters)


@pytest.mark.parametrize(("cls", "parameters", "message"), INVALID)
def test_a_spec_is_refused_for_the_same_at_its_place(cls, parameters, message):
    (key, value) = next(iter(parameters.items()))
    with pytest.raises(SpecError, match=rf"sampler\.{key}: is .* should be"):
        load_spec("bahdanau-reversal", overrides=[f"sampler={{type: {cls.name}, {key}: {value}}}"])


def test_a_temperature_divides_and_leaves_the_impossible():
    logprobs = torch.tensor([0.5, 0.25, 0.25, 0.0]).log()

    cold = apply_temperature(logprobs, 0.5)

    torch.testing.assert_close(
        cold.softmax(dim=-1), torch.tensor([4 / 6, 1 / 6, 1 / 6, 0.0]), rtol=0, atol=1e-6
    )
    assert apply_temperature(logprobs, 1.0) is logprobs
    assert apply_temperature(logprobs, 1e-45).softmax(dim=-1).tolist() == [1, 0, 0, 0]


def test_mass_is_shared_among_the_kept():
    logprobs = torch.tensor([0.5, 0.2, 0.3]).log()

    shared = among(logprobs, torch.tensor([True, False, True]))

    torch.testing.assert_close(shared, torch.tensor([0.625, 0.0, 0.375]), rtol=0, atol=1e-6)


def test_a_draw_adds_the_models_log_probability_not_the_sharpened_one():
    logprobs = torch.tensor([[[0.5, 0.25, 0.25]]]).log()

    chosen = TopK(k=1, temperature=0.1).select(logprobs, torch.tensor([[-1.0]]))

    assert chosen.tokens.tolist() == chosen.parents.tolist() == [[0]]
    torch.testing.assert_close(chosen.scores, torch.tensor([[-1.0 + math.log(0.5)]]))


def test_rows_draw_apart_from_each_other():
    generator = torch.Generator().manual_seed(0)
    logprobs = torch.full((1000, 2, 4), 0.25).log()

    tokens = Temperature().select(logprobs, torch.zeros(1000, 2), generator).tokens

    # 16 pairs, 62.5 expected of each: the 99.9th percentile of chi-square with 15 degrees is 37.7.
    seen = torch.bincount(tokens[:, 0] * 4 + tokens[:, 1], minlength=16).double()
    assert ((seen - 62.5) ** 2 / 62.5).sum() < 37.7


def test_a_clock_that_rings_at_once_draws_nothing_impossible(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "exponential_", lambda self, generator=None: self.zero_())
    logprobs = torch.tensor([[[0.0, 0.0, 1.0, 0.0]]]).log()

    assert Temperature().select(logprobs, torch.zeros(1, 1)).tokens.tolist() == [[2]]
    assert issubclass(Temperature, Sampler)
