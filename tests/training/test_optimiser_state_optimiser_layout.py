"""The state of every optimiser is checked before it is used: names, shapes and dtypes."""

import json

import pytest
import torch
from training_kit import make_spec, weights

import zoo
from zoo import ZooError
from zoo.artifact.checkpoint import write_tensors
from zoo.interfaces.tensors import TensorMeta
from zoo.registry.component_registry import default_registry
from zoo.training.optimiser_state import find_layout

SPEC = "transformer-tiny"
NAMES = sorted({entry.name for entry in default_registry().components("optimiser")})
SETTINGS = {"sgd": {"momentum": 0.9}}


def _make(files, name, **settings):
    optimiser = {"type": name, "lr": 0.01, **SETTINGS.get(name, {}), **settings}
    spec = make_spec(files, optimiser=optimiser)
    model = zoo.compose(spec)
    return model, zoo.optimiser(spec, model)


def _step(model, optimiser):
    zoo.objective(SPEC)(model(model.example(2, 4))).backward()
    optimiser.step()
    optimiser.zero_grad()


@pytest.mark.parametrize("name", NAMES)
def test_every_optimiser_rejects_tensors_of_other_shapes_and_dtypes(files, tmp_path, name):
    model, optimiser = _make(files, name)
    _step(model, optimiser)
    path = zoo.save_checkpoint(tmp_path, model, optimiser, step=1)
    stored = weights(path / "optimiser.safetensors")
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    first = {key.split("/")[1]: key for key in stored}
    assert first
    for key in first.values():
        wrongs = [stored[key].new_zeros(3, 1, 1), stored[key].to(torch.int64)]
        for wrong in [*wrongs, None] if len(first) > 1 else wrongs:
            _change(path, stored, key, wrong)
            with pytest.raises(
                ZooError, match=r"the optimiser state '\w+' of .* in the checkpoint but"
            ):
                zoo.load_checkpoint(path, model, optimiser)
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[key])


def _change(path, stored, key, wrong):
    """Replace or remove a tensor in a checkpoint, which has no hashes, as of previous versions."""
    changed = {name: tensor for name, tensor in stored.items() if name != key}
    if wrong is not None:
        changed[key] = wrong
    state = json.loads((path / "state.json").read_text())
    state.pop("sha256", None)
    state.pop("format", None)
    (path / "state.json").write_text(json.dumps(state))
    metas = {name: TensorMeta.of(tensor) for name, tensor in changed.items()}
    write_tensors(path / "optimiser.safetensors", metas, changed.items())


@pytest.mark.parametrize("name", NAMES)
def test_the_layout_is_that_of_a_state_after_a_step(files, name):
    model, optimiser = _make(files, name)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    layout = find_layout(model, optimiser)
    assert not optimiser.state
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
    _step(model, optimiser)
    names = {id(parameter): key for key, parameter in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        found = {key: TensorMeta.of(value) for key, value in state.items() if value is not None}
        assert found == layout[names[id(parameter)]]


def test_momenta_that_are_not_used_are_left_out(files, tmp_path):
    model, optimiser = _make(files, "sgd")
    _step(model, optimiser)
    zoo.save_checkpoint(tmp_path, model, optimiser, step=1)
    other, plain = _make(files, "sgd", momentum=0.0)
    zoo.load_checkpoint(tmp_path, other, plain)
    _step(other, plain)
