"""Calls that are captured on a GPU, and their plain form elsewhere."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrize

import zoo
from zoo.training.recomputation import recompute_parts
from zoo_fast.generation.captured_calls import (
    call_captured,
    inspect_module,
)
from zoo_fast.generation.kept_graphs import module_graphs


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
    before = inspect_module(module, gpu)[1]
    module.weight.data = module.weight.data.t()  # in the same place
    assert inspect_module(module, gpu)[1] != before
    module.register_forward_hook(lambda *_: None)
    assert reason(gpu) == "the module has hooks"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_the_weights_of_a_traced_part_are_in_the_key():
    traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    module, gpu = nn.Sequential(nn.Linear(2, 2), traced).eval(), torch.device("cuda")
    reason, (places, *_) = inspect_module(module, gpu)
    assert reason is None
    assert {weight.data_ptr() for weight in module.parameters()} <= {place for place, *_ in places}


def test_settings_belong_to_their_parts():
    def key(*values):
        parts = [nn.Tanh() for _ in values]
        for part, value in zip(parts, values, strict=True):
            part.value = value
        return inspect_module(nn.Sequential(*parts).eval(), torch.device("cuda"))[1]

    assert key(5, None) == key(5, None) != key(None, 5)


def test_settings_are_read_again_when_the_attributes_of_a_part_change():
    module, gpu = nn.Sequential(nn.Tanh(), nn.Tanh()).eval(), torch.device("cuda")

    def key():
        return inspect_module(module, gpu)[1]

    keys = [key()]
    module[0].scale = 2.0
    keys.append(key())
    module[0].scale = 3.0
    keys.append(key())
    del module[0].scale
    module[0].power = "of 3"  # as many attributes as before
    keys.append(key())
    module[1].window = (1, 2)
    tuples = key()
    module[1].window = 7
    keys.append(key())
    module[1] = nn.Sigmoid()
    module[1].window = 7
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert tuples not in keys[4:]


class Twice(nn.Module):
    """A parametrization without parameters."""

    def forward(self, weight):
        return 2 * weight


def patch_forward(decoder):
    decoder.output.forward = lambda states: 2 * states


def compile_output(decoder):
    decoder.output = torch.compile(decoder.output)


def recompute_decoder(model):
    recompute_parts(model, ["decoder"])


@pytest.mark.parametrize("change", [recompute_decoder, lambda model: model.decoder.compile()])
def test_the_key_does_not_keep_the_module(change):
    model = zoo.compose("gpt2-tiny").eval()
    change(model)
    reason, key = inspect_module(model.decoder, torch.device("cuda"))
    assert reason is None
    module_graphs(model.decoder).find((scale, ()), key)
    decoder = weakref.ref(model.decoder)
    del model
    gc.collect()
    assert decoder() is None


SETTINGS = {
    "scale": lambda decoder: setattr(decoder.blocks[0].attention.scorers.first, "scale", 3.0),
    "window": lambda decoder: setattr(decoder.blocks[0], "window", 4),
    "activation": lambda decoder: setattr(decoder.blocks[0].feed_forward, "activation", "silu"),
    "class": lambda decoder: setattr(decoder, "position", nn.Identity()),
    "parametrization": lambda decoder: parametrize.register_parametrization(
        decoder.blocks[0].feed_forward.up, "weight", Twice()
    ),
}


@pytest.mark.parametrize("change", SETTINGS)
def test_the_settings_of_all_parts_are_in_the_key(change):
    decoder, gpu = zoo.compose("gpt2-tiny").eval().decoder, torch.device("cuda")
    reason, before = inspect_module(decoder, gpu)
    assert reason is None
    assert inspect_module(decoder, gpu) == (None, before)
    SETTINGS[change](decoder)
    decoder.eval()  # parametrizations are in training mode
    reason, after = inspect_module(decoder, gpu)
    assert reason is None
    assert after != before


def test_parts_that_a_graph_would_not_call_are_reasons():
    gpu = torch.device("cuda")

    def reason(change):
        decoder = zoo.compose("gpt2-tiny").eval().decoder
        change(decoder)
        return inspect_module(decoder, gpu)[0]

    assert reason(lambda decoder: decoder.blocks[0].train()) == "a part is in training mode"
    assert reason(patch_forward) == "a part has another forward method"
    assert reason(lambda decoder: recompute_parts(decoder, ["blocks.0"])) is None
    assert reason(compile_output) is None
    hook = register_module_forward_hook(lambda *_: None)
    try:
        assert reason(lambda _: None) == "the module has hooks"
    finally:
        hook.remove()


def call(module, x, **options):
    return call_captured(module, scale, {"x": x}, 2.0, **options)[0]["product"]


class Scaled(nn.Linear):
    """A linear layer with a setting."""

    factor = 1.0

    def forward(self, x):
        return self.factor * super().forward(x)


def captured_linear(x):
    """Return a module for which a call with these inputs is captured."""
    module = Scaled(2, 3).cuda().eval()
    for _ in range(4):
        call(module, x)
    return module


@pytest.fixture
def events(monkeypatch):
    """A list to which each replay of a graph is added."""
    found, replay = [], torch.cuda.CUDAGraph.replay

    def record(graph):
        found.append("replay")
        replay(graph)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", record)
    return found


@pytest.mark.gpu
@torch.no_grad()
def test_the_module_is_inspected_while_the_graph_runs(events):
    x = torch.ones(1, 2, device="cuda")
    module = captured_linear(x)
    events.clear()

    def inspect():
        events.append("inspect")
        return inspect_module(module, x.device)

    torch.testing.assert_close(call(module, x, inspect=inspect), 2 * module(x))
    assert events == ["replay", "inspect"]


def replace_weight(module):
    module.weight = nn.Parameter(module.weight + 1)
    torch.cuda.empty_cache()


def replace_memory(module):
    module.weight.data = module.weight.data * 3
    torch.cuda.empty_cache()


def replace_forward(module):
    module.forward = lambda x: 5 * nn.functional.linear(x, module.weight)


CHANGES = {
    "weight": (replace_weight, 0),
    "memory": (replace_memory, 0),
    "moved and back": (lambda module: module.cpu().cuda(), None),
    "hook": (lambda module: module.register_forward_hook(lambda *given: given[2] + 5), 1),
    "training": (lambda module: module.train(), 1),
    "forward": (replace_forward, 1),
    "setting": (lambda module: setattr(module, "factor", 3.0), 1),
}
"""What is changed, and the graphs that are started before it is found; None if the weights can be
where they were."""


@pytest.mark.gpu
@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_a_changed_module_does_not_use_its_old_graph(change, events):
    x = torch.ones(1, 2, device="cuda")
    module = captured_linear(x)
    before = call(module, x)
    apply, started = CHANGES[change]
    events.clear()
    apply(module)
    found = [call(module, x), call(module, x)]
    assert started is None or len(events) == started
    torch.testing.assert_close(found, [2 * module(x)] * 2)
    if change in ("weight", "memory", "hook", "forward", "setting"):
        assert not torch.allclose(found[0], before)


@pytest.mark.gpu
@torch.no_grad()
def test_graphs_are_started_early_again_after_a_hook_was_removed(events):
    x = torch.ones(1, 2, device="cuda")
    module = captured_linear(x)
    hook = module.register_forward_hook(lambda *given: given[2] + 5)
    call(module, x)
    hook.remove()
    events.clear()

    def inspect():
        events.append("inspect")
        return inspect_module(module, x.device)

    found = [call(module, x, inspect=inspect), call(module, x, inspect=inspect)]
    torch.testing.assert_close(found, [2 * module(x)] * 2)
    assert events == ["inspect", "replay", "replay", "inspect"]


@pytest.mark.gpu
@torch.no_grad()
def test_graphs_of_inference_mode_are_used_outside_of_it():
    x = torch.ones(1, 2, device="cuda")
    with torch.inference_mode():
        module = captured_linear(x)
    torch.testing.assert_close(call(module, 3 * x), 2 * module(3 * x))


@pytest.mark.gpu
@torch.no_grad()
def test_weights_of_a_captured_module_can_be_swapped():
    x = torch.ones(1, 2, device="cuda")
    module = captured_linear(x)
    expected = call(module, x)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        module.cpu().cuda()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    torch.testing.assert_close(call(module, x), expected)


@pytest.mark.gpu
@torch.no_grad()
def test_borrowed_outputs_are_those_of_the_graph():
    x = torch.ones(1, 2, device="cuda")
    module = captured_linear(x)
    borrowed, other = call(module, x, borrow="product"), call(module, x, borrow="sum")
    call(module, 2 * x)
    torch.testing.assert_close(borrowed, 2 * module(2 * x))
    torch.testing.assert_close(other, 2 * module(x))


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
