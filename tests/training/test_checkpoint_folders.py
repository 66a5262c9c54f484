"""Checkpoints of training loops of the caller."""

import pytest
import torch

import zoo
from zoo import ZooError
from zoo_objectives.reinforce import Reinforce

SPEC = "transformer-tiny"


def _step(model, optimiser):
    objective = zoo.objective(SPEC)
    batch = model.example(2, 4, torch.Generator().manual_seed(0))
    objective(model(batch)).backward()
    optimiser.step()
    optimiser.zero_grad()


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_model_and_optimiser_continue_bit_for_bit(tmp_path, kind):
    model = zoo.compose(SPEC)
    optimiser = kind(model.parameters(), lr=0.1)
    _step(model, optimiser)
    path = zoo.save_checkpoint(tmp_path, model, optimiser, step=1, state={"epoch": 3})
    assert sorted(file.name for file in path.iterdir()) == [
        "model.safetensors",
        "optimiser.safetensors",
        "state.json",
    ]
    other = zoo.compose(SPEC, seed=1)
    other_optimiser = kind(other.parameters(), lr=0.1)
    assert zoo.load_checkpoint(tmp_path, other, other_optimiser) == {"epoch": 3, "step": 1}
    _step(model, optimiser)
    _step(other, other_optimiser)
    for name, parameter in model.named_parameters():
        assert torch.equal(other.get_parameter(name), parameter)
    assert isinstance(zoo.load(path / "model.safetensors"), zoo.Model)


def test_the_state_of_the_objective_is_restored(tmp_path):
    model, objective = zoo.compose(SPEC), Reinforce()
    objective.baseline.fill_(3.0)
    optimiser = torch.optim.SGD(model.parameters())
    path = zoo.save_checkpoint(tmp_path, model, optimiser, step=1, objective=objective)
    restored = Reinforce()
    zoo.load_checkpoint(path, model, optimiser, objective=restored)
    assert restored.baseline == 3.0


def test_a_checkpoint_without_an_objective_is_loaded(tmp_path):
    model, objective = zoo.compose(SPEC), Reinforce()
    optimiser = torch.optim.SGD(model.parameters())
    path = zoo.save_checkpoint(tmp_path, model, optimiser, step=1)
    assert zoo.load_checkpoint(path, model, optimiser, objective=objective) == {"step": 1}


def test_another_model_is_rejected(tmp_path):
    model = zoo.compose(SPEC)
    path = zoo.save_checkpoint(tmp_path, model, torch.optim.SGD(model.parameters()), step=1)
    other = zoo.compose(SPEC, overrides=["model.source.vocab=30"])
    with pytest.raises(ZooError, match=r"does not fit the model: 'source\.table\.weight'"):
        zoo.load_checkpoint(path, other, torch.optim.SGD(other.parameters()))


def test_a_folder_without_checkpoints_is_rejected(tmp_path):
    model = zoo.compose(SPEC)
    with pytest.raises(ZooError, match="does not contain a checkpoint"):
        zoo.load_checkpoint(tmp_path, model, torch.optim.SGD(model.parameters()))
