import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

import zoo
from zoo.plugin import Linear
from zoo_fast.device import packed_linear
from zoo_fast.device.packed_linear import PackedWeights, linear, packed_weights


@pytest.fixture(autouse=True)
def mkldnn():
    """torch disables oneDNN after a product in bfloat16 on CPUs without its instructions."""
    before = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(True)
    yield
    torch._C._set_mkldnn_enabled(before)


@pytest.fixture(autouse=True)
def pack_small_weights(monkeypatch):
    monkeypatch.setattr(packed_linear, "SMALLEST", 1)


@pytest.fixture
def kernel_calls(monkeypatch):
    """Count the weights that are packed."""
    calls = []
    pack = packed_linear._Group._pack
    monkeypatch.setattr(
        packed_linear._Group, "_pack", lambda self, rows: (calls.append(rows), pack(self, rows))
    )
    return calls


@torch.no_grad()
def test_results_equal_linear_and_weights_are_packed_once(kernel_calls):
    torch.manual_seed(0)
    layer, packed = zoo.accelerate(Linear(5, 7)), PackedWeights()
    for rows in (3, 3, 4, 1):
        x = torch.randn(rows, 1, 5)
        with packed.use():
            found = layer(x)
        torch.testing.assert_close(found, F.linear(x, layer.weight, layer.bias))
    assert kernel_calls == [3]


@torch.no_grad()
@pytest.mark.parametrize(("rows", "calls", "packs"), [(4, 8, False), (4, 16, True), (8, 2, True)])
def test_weights_are_packed_if_it_repays(rows, calls, packs, kernel_calls):
    packed, x = PackedWeights(rows=rows, calls=calls), torch.randn(3, 5)
    weight = nn.Parameter(torch.randn(7, 5))
    for _ in range(3):
        torch.testing.assert_close(packed.linear(x, (weight, None)), F.linear(x, weight))
    assert bool(kernel_calls) == packs


@torch.no_grad()
def test_layers_with_one_input_are_concatenated(kernel_calls):
    torch.manual_seed(0)
    x, first, second = torch.randn(3, 5), Linear(5, 7), Linear(5, 2)
    packed = PackedWeights()
    expected = torch.cat([first(x), second(x)], dim=-1)
    for _ in range(3):
        layers = [(layer.weight, layer.bias) for layer in (first, second)]
        torch.testing.assert_close(packed.linear(x, *layers), expected)
    assert kernel_calls == [3]


@torch.no_grad()
def test_a_changed_weight_is_packed_again(kernel_calls):
    torch.manual_seed(0)
    layer, packed, x = Linear(5, 7, bias=False), PackedWeights(), torch.randn(3, 5)
    zoo.accelerate(layer)
    for factor in (1.0, 1.0, 2.0):
        layer.weight.mul_(factor)
        with packed.use():
            torch.testing.assert_close(layer(x), x @ layer.weight.T)
    assert kernel_calls == [3, 3]


@torch.no_grad()
def test_other_types_use_the_plain_kernel():
    torch.manual_seed(0)
    packed, x = PackedWeights(), torch.randn(3, 5).double()
    weight = nn.Parameter(torch.randn(7, 5).double())
    for _ in range(3):
        with packed.use():
            torch.testing.assert_close(linear(x, weight), x @ weight.T)


@torch.no_grad()
@pytest.mark.parametrize("name", ["weight", "bias"])
def test_weights_that_are_computed_at_each_access_are_not_kept(name, kernel_calls):
    layer, packed = weight_norm(Linear(5, 7), name, dim=None), PackedWeights()
    x = torch.randn(3, 5)
    for step in range(20):
        layer.parametrizations[name].original0.add_(step)
        found = packed.linear(x, (layer.weight, layer.bias))
        torch.testing.assert_close(found, F.linear(x, layer.weight, layer.bias))
    assert not packed._groups
    assert not kernel_calls


def test_weights_that_are_packed_in_inference_mode_are_used_outside_of_it(kernel_calls):
    layer, packed, x = zoo.accelerate(Linear(5, 7)), PackedWeights(), torch.randn(3, 5)
    for mode in (torch.inference_mode, torch.inference_mode, torch.no_grad, torch.inference_mode):
        with mode(), packed.use():
            found = layer(x)
        torch.testing.assert_close(found, F.linear(x, layer.weight, layer.bias))
    assert kernel_calls == [3]
    with torch.no_grad(), packed.use():
        layer.weight.mul_(2.0)
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))
    assert kernel_calls == [3, 3]


@torch.inference_mode()
def test_weights_of_inference_mode_are_not_packed(kernel_calls):
    layer, packed, x = zoo.accelerate(Linear(5, 7)), PackedWeights(), torch.randn(3, 5)
    for _ in range(3):
        with packed.use():
            assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    assert not kernel_calls


def test_gradients_and_the_end_of_the_block_disable_packing():
    packed = PackedWeights()
    with packed.use():
        assert packed_weights() is None
    with torch.no_grad():
        with packed.use():
            assert packed_weights() is packed
        assert packed_weights() is None


@torch.no_grad()
def test_weights_beyond_the_limit_are_not_packed(kernel_calls, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(packed_linear, "MAX_BYTES", 200)
    first, second = (zoo.accelerate(Linear(5, 7)) for _ in range(2))
    packed, x = PackedWeights(), torch.randn(3, 5)
    for layer in (first, second, first, second):
        with packed.use():
            torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))
    assert kernel_calls == [3]
