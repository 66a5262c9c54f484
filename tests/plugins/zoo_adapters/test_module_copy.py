"""Trained copies of modules."""

import pytest
import torch

import zoo


def test_the_copy_is_used_and_trained_instead_of_the_module():
    model = zoo.compose("bert-tiny").eval()
    zoo.adapt(model, {"type": "module-copy", "targets": ["*.feed_forward.up"]})
    up = model.encoder.blocks[0].feed_forward.up
    x = torch.randn(3, up.in_features)
    layer = model.adapters.adapter.layers.get_submodule("encoder.blocks.0.feed_forward.up")
    assert torch.equal(layer.module.weight, up.weight)
    with torch.no_grad():
        layer.module.weight *= 2
        layer.module.bias.zero_()
    torch.testing.assert_close(up(x), 2 * x @ up.weight.T)
    assert not up.weight.requires_grad
    assert layer.module.weight.requires_grad


def test_modules_with_parts_are_not_copied():
    with pytest.raises(zoo.SpecError, match="matches no module that 'module-copy' can adapt"):
        zoo.adapt(zoo.compose("bert-tiny"), {"type": "module-copy", "targets": ["nothing"]})
