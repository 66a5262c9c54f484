"""Uniform: the range of Sutskever et al. 2014."""

import pytest
import torch

import zoo
from zoo.plugin import Weight
from zoo_init.uniform import Uniform


def test_all_parameters_of_sutskever_are_between_minus_and_plus_0_08():
    overrides = [
        "model.source={vocab: 300, dim: 40}",
        "model.target={vocab: 200, dim: 40}",
        "model.encoder.hidden=50",
        "model.decoder.hidden=50",
    ]
    for name, parameter in zoo.compose("sutskever-2014", overrides=overrides).named_parameters():
        assert 0.07 < parameter.max() <= 0.08, name
        assert -0.08 <= parameter.min() < -0.07, name
        assert abs(parameter.mean().item()) < 0.02, name


@pytest.mark.parametrize(("spec", "bound"), [("luong-2015", 0.1), ("lstm-lm", 0.05)])
def test_the_range_of_other_papers(spec, bound):
    side = "source" if spec == "luong-2015" else "embedding"
    small = [f"model.{side}={{vocab: 300, dim: 40}}", "model.decoder.hidden=40"]
    small += ["model.encoder.hidden=40"] if spec == "luong-2015" else []
    model = zoo.compose(spec, overrides=small)
    largest = max(parameter.abs().max().item() for parameter in model.parameters())
    assert 0.99 * bound < largest <= bound


def test_biases_can_be_zero():
    bias = torch.ones(3)
    Uniform(bound=0.1, biases=False)(Weight("b", bias, "bias"))
    assert bias.tolist() == [0.0, 0.0, 0.0]
