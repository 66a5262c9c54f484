"""Several adapters of one model, switched at run time."""

import pytest
import torch

import zoo
from zoo.acceleration import is_accelerated
from zoo.adapters import find_adapters


@pytest.fixture
def model():
    model = zoo.compose("bert-tiny").eval()
    for name, kind in (("a", "lora"), ("b", "ia3")):
        zoo.adapt(model, {"type": kind, "targets": ["*.{key,value}"]}, name=name)
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.1
    return model


def _logits(model):
    return model(model.example(2, 5, torch.Generator().manual_seed(0))).logits


def test_the_adapter_added_last_is_used_alone(model):
    assert {name: each.enabled for name, each in find_adapters(model).items()} == {
        "a": False,
        "b": True,
    }


def test_adapters_are_switched_and_combined(model):
    outputs = []
    for names in ((), ("a",), ("b",), ("a", "b")):
        zoo.use_adapters(model, *names)
        outputs.append(_logits(model))
    for i, first in enumerate(outputs):
        for second in outputs[i + 1 :]:
            assert not torch.allclose(first, second)
    torch.testing.assert_close(outputs[0], _logits(zoo.compose("bert-tiny").eval()))


def test_a_block_without_adapters_restores_them(model):
    before = _logits(model)
    with zoo.without_adapters(model):
        torch.testing.assert_close(_logits(model), _logits(zoo.compose("bert-tiny").eval()))
    assert torch.equal(_logits(model), before)


def test_an_unknown_name_is_rejected(model):
    with pytest.raises(zoo.ZooError, match=r"no adapter 'c'.*available: a, b"):
        zoo.use_adapters(model, "c")


def test_two_copies_of_a_module_are_switched_but_not_combined(model):
    for name in ("c", "d"):
        zoo.adapt(model, {"type": "module-copy", "targets": ["*.query"]}, name=name)
    with pytest.raises(zoo.ZooError, match=r"query is already replaced by adapter 'c'; .*'d'"):
        zoo.use_adapters(model, "c", "d")
    assert [name for name, each in find_adapters(model).items() if each.enabled] == ["d"]
    zoo.use_adapters(model, "a", "c")


def test_accelerations_are_renewed_because_captured_graphs_contain_adapters(model):
    zoo.accelerate(model)
    before = _accelerations(model)
    zoo.use_adapters(model, "a")
    after = _accelerations(model)
    assert len(before) == len(after) > 0
    assert not {id(each) for each in before} & {id(each) for each in after}


def _accelerations(model):
    accelerated = [module for module in model.modules() if is_accelerated(module)]
    return [each for module in accelerated for each in module._accelerations]


def test_a_compiled_model_follows_the_switch(model):
    zoo.accelerate(model, enabled=False)
    expected = _logits(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    torch.testing.assert_close(compiled(batch).logits, expected)
    zoo.use_adapters(model)
    torch.testing.assert_close(compiled(batch).logits, _logits(zoo.compose("bert-tiny").eval()))
