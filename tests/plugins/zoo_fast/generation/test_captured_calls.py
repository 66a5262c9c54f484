"""Calls that are captured on a GPU, and their plain form elsewhere."""

import pytest
import torch
from torch import nn

from zoo_fast.generation.captured_calls import call_captured, copy_tensors, inspect_module


def scale(module, inputs, factor):
    return {"product": factor * module(inputs["x"])}, factor


def test_on_the_cpu_the_function_is_called():
    module, x = nn.Linear(2, 3).eval(), torch.ones(1, 2)
    with torch.no_grad():
        result, factor = call_captured(module, scale, {"x": x}, 2.0)
    assert factor == 2
    torch.testing.assert_close(result["product"], 2 * module(x))


def test_reasons():
    module, gpu = nn.Linear(2, 2), torch.device("cuda")

    def reason(device):
        return inspect_module(module, device)[0]

    assert reason(torch.device("cpu")) == "the device is 'cpu', not 'cuda'"
    assert reason(gpu) == "the module is in training mode"
    module.eval()
    assert reason(gpu) is None
    before = inspect_module(module, gpu)[1]
    module.double()
    assert inspect_module(module, gpu)[1] != before
    module.register_forward_hook(lambda *_: None)
    assert reason(gpu) == "the module has hooks"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_the_weights_of_a_traced_part_are_in_the_key():
    traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    module, gpu = nn.Sequential(nn.Linear(2, 2), traced).eval(), torch.device("cuda")
    reason, (places, _) = inspect_module(module, gpu)
    assert reason is None
    assert {weight.data_ptr() for weight in module.parameters()} <= {place for place, _ in places}


def test_copies_of_different_dtypes():
    tensors = {"a": torch.randn(2, 3), "b": torch.tensor([True]), "c": torch.randn(4)[::2]}
    copies = copy_tensors(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(copies[name], tensor)
        assert copies[name].data_ptr() != tensor.data_ptr()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@torch.no_grad()
def test_replays_use_the_current_inputs_and_weights():
    module = nn.Linear(2, 3).cuda().eval()
    results, expected = [], []
    for index in range(6):
        x = torch.full((1, 2), float(index), device="cuda")
        module.weight.add_(1.0)
        results.append(call_captured(module, scale, {"x": x}, 2.0)[0]["product"])
        expected.append(2 * module(x))
    torch.testing.assert_close(results, expected)
