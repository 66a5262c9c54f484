import math

import torch

from zoo_language.layer_mix import LayerMix


def test_a_known_value():
    mix = LayerMix(3)
    states = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]]])
    torch.testing.assert_close(mix(states), states.mean(dim=1))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, math.log(2.0), math.log(5.0)]))  # s = 1/8, 2/8, 5/8
        mix.gamma.fill_(4.0)
    torch.testing.assert_close(mix(states), torch.tensor([[10.5, 12.0]]))


def test_weights_and_scale_are_parameters():
    names = {name: list(p.shape) for name, p in LayerMix(3).named_parameters()}
    assert names == {"weights": [3], "gamma": [1]}
