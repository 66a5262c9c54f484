"""Prefix tuning, compared with a loop over heads and queries."""

import pytest
import torch

import zoo


@torch.no_grad()
def test_the_context_is_that_of_a_loop():
    model = zoo.compose("bert-tiny").eval()
    attention = model.encoder.blocks[0].attention
    x = torch.randn(2, 3, attention.query_dim)
    plain = attention(x, x).context
    zoo.adapt(model, {"type": "prefix", "length": 4, "targets": ["encoder.blocks.0.attention"]})
    layer = model.adapters.adapter.layers.get_submodule("encoder.blocks.0.attention")
    layer.keys.normal_()
    layer.values.normal_()
    layer.gate.normal_()
    d = attention.head_dim
    queries = attention.query(x)
    added = torch.zeros_like(queries)
    for b in range(2):
        for t in range(3):
            for h in range(attention.heads):
                part = slice(h * d, (h + 1) * d)
                beta = (layer.keys[h] @ queries[b, t, part] / d**0.5).softmax(dim=0)
                added[b, t, part] = layer.gate[h].tanh() * (beta @ layer.values[h])
    expected = plain + added @ attention.out.weight.T
    torch.testing.assert_close(attention(x, x).context, expected)


@torch.no_grad()
def test_with_gates_of_zero_it_does_not_add_the_bias_of_an_adapted_projection():
    model = zoo.compose("bert-tiny").eval()
    attention = model.encoder.blocks[0].attention
    zoo.adapt(model, {"type": "module-copy", "targets": ["*.attention.out"]}, name="copy")
    model.adapters.copy.layers.get_submodule("encoder.blocks.0.attention.out").module.bias += 1
    x = torch.randn(2, 3, attention.query_dim)
    expected = attention(x, x).context
    zoo.adapt(model, {"type": "prefix", "targets": ["encoder.blocks.0.attention"]}, name="prefix")
    zoo.use_adapters(model, "copy", "prefix")
    torch.testing.assert_close(attention(x, x).context, expected)


def test_it_cannot_be_merged():
    model = zoo.compose("bert-tiny")
    zoo.adapt(model, {"type": "prefix", "targets": ["*.attention"]})
    with pytest.raises(zoo.ZooError, match="keep the adapter"):
        zoo.merge_adapters(model)
