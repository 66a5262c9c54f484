"""Accelerations are bound from outside, and every copy is plain."""

import copy
import io
import logging
import unittest

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import register_parametrization

import zoo
from zoo.acceleration import is_accelerated, module_paths, plain_class, reference
from zoo.interfaces import Declined
from zoo.registry.component_registry import ComponentRegistry
from zoo.testing.tiny_acceleration import TinyAcceleration, TwoLayers

X = torch.arange(6.0).view(2, 3)


class Counting(TinyAcceleration):
    calls = 0

    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Tensor:
        self.calls += 1
        return super().forward(target, x, scale=scale)


class Declining(TinyAcceleration):
    name = "declining"
    order = -1

    def forward(self, target: TwoLayers, x: Tensor, *, scale: float = 1.0) -> Declined:
        return Declined("always")


REGISTRY = ComponentRegistry().with_components([Counting, Declining], plugin="test")


def _calls(module):
    return module._accelerations[1].calls


@pytest.fixture
def model():
    return zoo.accelerate(nn.Sequential(TwoLayers(), nn.Flatten()), registry=REGISTRY)


def test_a_declined_call_goes_to_the_next_acceleration(model):
    torch.testing.assert_close(model(X), reference(model[0], "forward")(X))
    assert _calls(model[0]) == 1
    assert isinstance(model[0], TwoLayers)
    assert plain_class(model[0]) is TwoLayers


def test_the_reason_of_a_declined_call_is_logged_once():
    registry = ComponentRegistry().with_components([Counting, Declining], plugin="test")
    model = zoo.accelerate(nn.Sequential(TwoLayers(), TwoLayers()), registry=registry)
    model[0](X)
    with unittest.TestCase().assertLogs("zoo", "INFO") as logs:
        for layer in (*model, *model):
            layer(X)
    (record,) = logs.records
    assert record.getMessage() == "acceleration 'declining' is not used for a call: always"
    assert record.levelno == logging.INFO


def test_a_subclass_is_not_served():
    class Other(TwoLayers):
        pass

    assert not is_accelerated(zoo.accelerate(Other(), registry=REGISTRY))


def test_binding_twice_keeps_the_accelerations_and_unbinding_restores_the_class(model):
    bound = model[0]._accelerations
    assert zoo.accelerate(model, registry=REGISTRY)[0]._accelerations is bound
    assert type(zoo.accelerate(model, enabled=False)[0]) is TwoLayers
    assert set(vars(model[0])) == set(vars(TwoLayers()))


def test_the_switch_turns_all_accelerations_off(model, monkeypatch):
    monkeypatch.setenv("ZOO_FAST", "off")
    model(X)
    assert _calls(model[0]) == 0
    assert not is_accelerated(zoo.accelerate(TwoLayers(), registry=REGISTRY))


def test_hooks_of_parts_use_the_reference_path_and_own_hooks_do_not(model):
    seen = []
    handle = model[0].first.register_forward_hook(lambda *_: seen.append("part"))
    model(X)
    handle.remove()
    assert (seen, _calls(model[0])) == (["part"], 0)
    model[0].register_forward_hook(lambda *_: seen.append("own"))
    model(X)
    assert (seen, _calls(model[0])) == (["part", "own"], 1)


class Adapted(nn.Linear):
    """A layer of another package."""


@pytest.mark.parametrize("change", ["class", "method"])
def test_replaced_parts_use_the_reference_path(model, change):
    if change == "class":
        model[0].first = Adapted(3, 5)
        Adapted.__module__ = "somewhere"
    else:
        model[0].first.forward = lambda x: x.new_zeros(2, 5)
    model(X)
    assert _calls(model[0]) == 0


def test_global_hooks_use_the_reference_path(model):
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        model(X)
    finally:
        handle.remove()
    assert _calls(model[0]) == 0


def test_a_model_without_accelerations_stays_so_until_they_are_enabled(model):
    zoo.accelerate(model, enabled=False)
    assert not is_accelerated(zoo.accelerate(model, registry=REGISTRY)[0])
    assert is_accelerated(zoo.accelerate(model, enabled=True, registry=REGISTRY)[0])


def test_a_name_is_not_a_model():
    with pytest.raises(zoo.ZooError, match="takes a model, not 'transformer-tiny'"):
        zoo.accelerate("transformer-tiny")


def test_compiled_models_use_the_reference_path(model):
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), model(X))
    assert _calls(model[0]) == 1  # of the call that is not compiled


def test_a_call_does_not_ask_an_acceleration_that_its_mode_excludes():
    asked = []

    class NotDifferentiable(TinyAcceleration):
        differentiable = False

        def why_not(self, target, device):
            asked.append(target)

    registry = ComponentRegistry().with_components([NotDifferentiable], plugin="test")
    layers = zoo.accelerate(TwoLayers(), registry=registry)
    layers(X)
    with torch.no_grad():
        torch.compile(layers, backend="eager")(X)
    assert not asked
    with torch.no_grad():
        layers(X)
    assert asked == [layers]


def test_a_call_during_which_accelerations_are_removed_ends():
    class Removing(Declining):
        name = "removing"

        def forward(self, target, x, *, scale=1.0):
            zoo.accelerate(target, enabled=False)
            return super().forward(target, x, scale=scale)

    registry = ComponentRegistry().with_components([Removing, Counting], plugin="test")
    layers = zoo.accelerate(TwoLayers(), registry=registry)
    bound = layers._accelerations
    torch.testing.assert_close(layers(X), reference(layers, "forward")(X))
    assert bound[1].calls == 1
    assert not is_accelerated(layers)


def test_an_object_whose_class_torch_derives_keeps_its_accelerations_until_they_are_removed(model):
    layers = model[0]
    layers.register_parameter("bias", nn.Parameter(torch.ones(2)))
    register_parametrization(layers, "bias", nn.ReLU())
    derived = type(layers)
    assert derived is not TwoLayers
    for _ in range(2):
        zoo.accelerate(model, registry=REGISTRY)
        torch.testing.assert_close(model(X), reference(layers, "forward")(X))
    assert _calls(layers) == 2
    for enabled in (False, False, True):
        zoo.accelerate(model, enabled=enabled, registry=REGISTRY)
        assert type(layers) is derived
        assert not is_accelerated(layers)
        torch.testing.assert_close(model(X), reference(layers, "forward")(X))


@torch.no_grad()
def test_a_parametrized_model_generates_as_without_accelerations():
    model = zoo.accelerate(zoo.compose("gpt2-tiny")).eval()
    for block in model.decoder.blocks:
        weight_norm(block.attention.query)
        block.attention.query.parametrizations.weight.original0.mul_(1.5)
    batch = model.example(2, 5)
    found = zoo.accelerate(model)(batch).logits, zoo.generate(model, [[3, 4, 5]], max_length=9)
    zoo.accelerate(model, enabled=False)
    expected = model(batch).logits, zoo.generate(model, [[3, 4, 5]], max_length=9)
    torch.testing.assert_close(found[0], expected[0])
    assert found[1] == expected[1]


def test_accelerations_of_a_compiled_model_are_removed_and_enabled_again(model):
    compiled = torch.compile(model, backend="eager")
    for enabled, expected in (
        (None, True),
        (False, False),
        (None, False),
        (True, True),
        (None, True),
    ):
        zoo.accelerate(compiled, enabled=enabled, registry=REGISTRY)
        assert is_accelerated(model[0]) is expected


def test_copies_and_saved_models_are_plain(model):
    for other in (copy.deepcopy(model), copy.copy(model[0])):
        first = other[0] if isinstance(other, nn.Sequential) else other
        assert type(first) is TwoLayers
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert type(loaded[0]) is TwoLayers
    torch.testing.assert_close(loaded(X), model(X))


def test_paths_of_a_model_on_the_meta_device():
    with torch.device("meta"):
        model = nn.Sequential(TwoLayers())
    (declining, counting) = module_paths(model, torch.device("cpu"), REGISTRY)
    assert (declining.name, declining.acceleration) == ("0", "declining")
    assert counting.evaluation is None
    assert counting.training is None


def test_models_on_the_meta_device_use_the_reference():
    model = zoo.accelerate(zoo.compose("bert-tiny")).to("meta")
    batch = {key: tensor.to("meta") for key, tensor in model.example(2, 3).items()}
    assert model(batch).logits.shape[:2] == (2, 3)
