"""Supporting facts: known values, and gates that the batch teaches."""

import math

import pytest
import torch

import zoo
from zoo import Outputs


def _objective(*changes):
    return zoo.load_spec("dynamic-memory-tiny", overrides=changes).sections.objective.build()


def test_undecided_gates_cost_log_two_times_the_weight():
    yes = torch.tensor([[True]])
    sure = Outputs(torch.tensor([[[99.0, 0.0]]]), torch.tensor([[0]]), yes)
    gates = Outputs(torch.zeros(1, 1, 3), torch.tensor([[[1.0, 0, 1]]]), yes)
    both = Outputs(sure.logits, sure.targets, yes, parts={"gates": gates})
    assert _objective()(sure).item() == pytest.approx(0.0)
    assert _objective("objective.weight=2.0")(both).item() == pytest.approx(2 * math.log(2))


def test_the_model_hands_on_its_gates_where_facts_are_marked():
    model = zoo.compose("dynamic-memory-tiny")
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    assert not model(batch).parts
    support = torch.zeros(2, 3, 2)
    support[:, 1] = 1
    gates = model(batch | {"support": support}).parts["gates"]
    assert gates.logits.shape == (2, 3, 2)
    assert gates.mask.all()
    objective = _objective()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = objective(model(batch | {"support": support}))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    opened = model(batch | {"support": support}).parts["gates"].logits.sigmoid()
    assert opened[:, 1].min() > 0.9
    assert opened[:, [0, 2]].max() < 0.1


def test_the_papers_objective_is_that_of_its_brute_force():
    objective = _objective()
    for seed in range(3):
        drawn = torch.Generator().manual_seed(seed)
        noise = torch.randn(3, 4, 2, generator=drawn, dtype=torch.float64)
        told = torch.arange(4) < torch.tensor([[4], [1], [2]])
        gates = Outputs(noise, (noise.flip(0) > 0).double(), told)
        answers = Outputs(
            torch.randn(3, 1, 5, generator=drawn, dtype=torch.float64),
            torch.tensor([[1], [2], [4]]),
            torch.tensor([[True], [False], [True]]),
            parts={"gates": gates},
        )
        assert objective(answers).item() == pytest.approx(objective.reference(answers))


def test_marks_of_another_shape_than_the_gates_are_refused():
    model = zoo.compose("dynamic-memory-tiny")
    batch = model.example(2, 3)
    with pytest.raises(zoo.ZooError, match=r"targets are \[2, 3\] and logits \[2, 3, 2\]"):
        _objective()(model(batch | {"support": torch.zeros(2, 3)}))
