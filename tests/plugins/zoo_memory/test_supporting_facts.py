"""Supporting facts: known values, and gates that the batch teaches."""

import math

import pytest
import torch

import zoo
from zoo import Outputs
from zoo_memory.supporting_facts import SupportingFacts


def test_undecided_gates_cost_log_two_times_the_weight():
    yes = torch.tensor([[True]])
    sure = Outputs(torch.tensor([[[99.0, 0.0]]]), torch.tensor([[0]]), yes)
    gates = Outputs(torch.zeros(1, 1, 3), torch.tensor([[[1.0, 0, 1]]]), yes)
    both = Outputs(sure.logits, sure.targets, yes, parts={"gates": gates})
    assert SupportingFacts()(sure).item() == pytest.approx(0.0)
    assert SupportingFacts(weight=2.0)(both).item() == pytest.approx(2 * math.log(2))


def test_the_model_hands_on_its_gates_where_facts_are_marked():
    model = zoo.compose("dynamic-memory-tiny")
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    assert not model(batch).parts
    support = torch.zeros(2, 3, 2)
    support[:, 1] = 1
    gates = model(batch | {"support": support}).parts["gates"]
    assert gates.logits.shape == (2, 3, 2)
    assert gates.mask.all()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = SupportingFacts()(model(batch | {"support": support}))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    opened = model(batch | {"support": support}).parts["gates"].logits.sigmoid()
    assert opened[:, 1].min() > 0.9
    assert opened[:, [0, 2]].max() < 0.1
