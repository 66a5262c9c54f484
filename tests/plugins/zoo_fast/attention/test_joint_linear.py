"""Linear layers that are joined, or whose bias is split off, against calls of the layers."""

import pytest
import torch
from torch import nn

import zoo
from zoo_fast.attention import joint_linear as module
from zoo_fast.attention.joint_linear import joint_linear, split_bias
from zoo_fast.attention.joint_memory import prepare_memories

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def device():
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        yield


@pytest.mark.parametrize("kernels", ["off", "interpret"])
@pytest.mark.parametrize("bias", [True, False])
def test_one_product_equals_the_layers(bias, kernels, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", kernels)
    monkeypatch.setattr(module, "replaces_calls", lambda *_: True)
    torch.manual_seed(0)
    layers = [nn.Linear(5, width, bias=bias) for width in (4, 70, 2)]
    x = torch.randn(2, 35, 5, requires_grad=True)
    leaves = [x, *(p for layer in layers for p in layer.parameters())]
    joined, separate = joint_linear(x, layers), [layer(x) for layer in layers]
    torch.testing.assert_close(joined, separate)
    upper = [torch.randn_like(part) for part in separate]
    found = torch.autograd.grad(joined, leaves, upper)
    expected = torch.autograd.grad(separate, leaves, upper)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_bias_is_split_off(bias, monkeypatch):
    layer, x = nn.Linear(3, 2, bias=bias), torch.randn(4, 3)
    monkeypatch.setattr(module, "replaces_calls", lambda *_: False)
    output, none = split_bias(x, layer)
    assert none is None
    assert torch.equal(output, layer(x))
    monkeypatch.setattr(module, "replaces_calls", lambda *_: True)
    output, found = split_bias(x, layer)
    assert found is layer.bias
    torch.testing.assert_close(output if found is None else output + found, layer(x))


def test_second_derivatives(monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    monkeypatch.setattr(module, "replaces_calls", lambda *_: True)
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    results = []
    for output in (*joint_linear(x, [layer]), layer(x)):
        (first,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), [x, layer.weight]))
    torch.testing.assert_close(*results)


def test_adjacent_gradients_are_not_copied():
    pytest.importorskip("triton")
    from zoo_fast.attention.kernels.training_linear import join_columns

    joined = torch.randn(4, 6)
    first, second = joined[:, :2], joined[:, 2:]
    assert join_columns([first, second]).data_ptr() == joined.data_ptr()
    assert torch.equal(join_columns([first, second]), joined)
    for parts in ([second, first], [first, second.clone()], [first], [first, joined[:, 3:]]):
        assert torch.equal(join_columns(parts), torch.cat(parts, dim=-1))


def test_memories_of_several_attentions(monkeypatch):
    torch.manual_seed(0)
    blocks = zoo.compose("transformer-tiny").decoder.blocks
    attentions = [blocks[0].cross, blocks[0].attention]
    states = torch.randn(2, 3, blocks[0].dim)
    monkeypatch.setattr(module, "replaces_calls", lambda *_: False)
    monkeypatch.setattr("zoo_fast.attention.joint_memory.replaces_calls", lambda *_: False)
    assert all(memory is states for memory in prepare_memories(attentions, states))
    expected = [attention.to(states.device).prepare(states) for attention in attentions]
    monkeypatch.setattr(module, "replaces_calls", lambda *_: True)
    monkeypatch.setattr("zoo_fast.attention.joint_memory.replaces_calls", lambda *_: True)
    found = prepare_memories(attentions, states)
    torch.testing.assert_close([dict(memory) for memory in found], expected)


def test_only_plain_layers_are_replaced():
    class Sharded(nn.Parameter):
        pass

    layer = nn.Linear(2, 2)
    assert module._is_plain(layer)
    layer.weight = Sharded(torch.zeros(2, 2))
    assert not module._is_plain(layer)
    assert not module._is_plain(nn.Sequential(layer))
