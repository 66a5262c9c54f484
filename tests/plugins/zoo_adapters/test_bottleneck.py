"""Bottleneck adapters after sublayers."""

import pytest
import torch
from torch import nn

import zoo
from zoo.adapters import attach
from zoo_adapters.bottleneck import Bottleneck


@torch.no_grad()
def test_known_values():
    model = nn.Module()
    model.layer = nn.Linear(2, 2)
    attach(model, "a", Bottleneck(targets=["layer"], width=1, activation="relu"))
    model.layer.weight.copy_(torch.eye(2))
    model.layer.bias.zero_()
    layer = model.adapters.a.layers.layer
    layer.down.weight.copy_(torch.tensor([[1.0, 1.0]]))
    layer.down.bias.fill_(-1.0)
    layer.up.weight.copy_(torch.tensor([[2.0], [3.0]]))
    layer.up.bias.fill_(0.5)
    # h = [1, 2], f(W h) = relu(3 - 1) = 2, up = [4.5, 6.5]
    torch.testing.assert_close(model.layer(torch.tensor([1.0, 2.0])), torch.tensor([5.5, 8.5]))
    torch.testing.assert_close(model.layer(torch.tensor([0.0, 0.0])), torch.tensor([0.5, 0.5]))


def test_the_outermost_sublayers_are_adapted():
    model = zoo.compose("bert-tiny")
    zoo.adapt(model, {"type": "bottleneck", "targets": ["*.attention", "*.feed_forward"]})
    names = {name.partition(".down")[0] for name, _ in model.adapters.named_parameters()}
    assert "adapter.layers.encoder.blocks.0.attention" in names
    assert not any("query" in name for name in names)


def test_it_cannot_be_merged():
    model = zoo.compose("bert-tiny")
    zoo.adapt(model, {"type": "bottleneck", "targets": ["*.feed_forward"]})
    with pytest.raises(zoo.ZooError, match=r"'adapter' at encoder.*is not linear"):
        zoo.merge_adapters(model)
