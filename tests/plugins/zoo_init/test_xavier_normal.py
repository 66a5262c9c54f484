"""Xavier normal: equal to torch.nn.init with the same seed."""

import torch
from torch import nn

from zoo.plugin import Weight
from zoo_init.xavier_normal import XavierNormal


def test_weights_equal_those_of_torch_with_the_same_seed():
    ours, theirs = torch.empty(7, 5, 3), torch.empty(7, 5, 3)
    torch.manual_seed(5)
    XavierNormal(gain=0.5)(Weight("w", ours, "convolution"))
    torch.manual_seed(5)
    nn.init.xavier_normal_(theirs, gain=0.5)
    assert torch.equal(ours, theirs)
