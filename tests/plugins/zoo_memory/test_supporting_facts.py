import math

import pytest
import torch

import zoo
from zoo import Outputs


def _objective(*changes):
    return zoo.load_spec("dynamic-memory-tiny", overrides=changes).sections.objective.build()


def test_zero_gate_logits_give_log_two_times_the_weight():
    mask = torch.tensor([[True]])
    answer = Outputs(torch.tensor([[[99.0, 0.0]]]), torch.tensor([[0]]), mask)
    gates = Outputs(torch.zeros(1, 1, 3), torch.tensor([[[1.0, 0, 1]]]), mask)
    joint = Outputs(answer.logits, answer.targets, mask, auxiliary={"gates": gates})
    assert _objective()(answer).item() == pytest.approx(0.0)
    assert _objective("objective.weight=2.0")(joint).item() == pytest.approx(2 * math.log(2))


def test_the_model_returns_its_gates_if_facts_are_labelled():
    model = zoo.compose("dynamic-memory-tiny")
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    assert not model(batch).auxiliary
    support = torch.zeros(2, 3, 2)
    support[:, 1] = 1
    gates = model(batch | {"support": support}).auxiliary["gates"]
    assert gates.logits.shape == (2, 3, 2)
    assert gates.mask.all()
    objective = _objective()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = objective(model(batch | {"support": support}))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    gates = model(batch | {"support": support}).auxiliary["gates"].logits.sigmoid()
    assert gates[:, 1].min() > 0.9
    assert gates[:, [0, 2]].max() < 0.1


def test_loss_matches_its_reference():
    objective = _objective()
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(3, 4, 2, generator=generator, dtype=torch.float64)
        mask = torch.arange(4) < torch.tensor([[4], [1], [2]])
        gates = Outputs(noise, (noise.flip(0) > 0).double(), mask)
        answers = Outputs(
            torch.randn(3, 1, 5, generator=generator, dtype=torch.float64),
            torch.tensor([[1], [2], [4]]),
            torch.tensor([[True], [False], [True]]),
            auxiliary={"gates": gates},
        )
        assert objective(answers).item() == pytest.approx(objective.reference(answers))


def test_labels_of_another_shape_than_the_gates_raise():
    model = zoo.compose("dynamic-memory-tiny")
    batch = model.example(2, 3)
    with pytest.raises(zoo.ZooError, match=r"'support'.*\[2, 3\].*\[B, N, 2\]"):
        model(batch | {"support": torch.zeros(2, 3)})


def test_a_batch_with_labelled_facts_cannot_be_split():
    objective = _objective()
    joint, *_, answer = objective.examples()
    assert not objective.mergeable
    with pytest.raises(zoo.ZooError, match=r"'supporting-facts'.*cannot be split"):
        objective.weight(joint)
    assert objective.weight(answer) == answer.mask.sum()
