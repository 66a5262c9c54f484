"""Binary cross-entropy: known values, torch's own, refusals."""

import math

import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import Outputs
from zoo_objectives.binary_cross_entropy import BinaryCrossEntropy


def test_an_undecided_logit_costs_log_two_and_padding_nothing():
    mask = torch.tensor([[True, False]])
    outputs = Outputs(torch.zeros(1, 2, 3), torch.tensor([[[1.0, 0, 1], [9, 9, 9]]]), mask)
    assert BinaryCrossEntropy()(outputs).item() == pytest.approx(math.log(2))


def test_it_is_torchs_mean_where_everything_counts():
    logits, targets = torch.randn(2, 3, 4), torch.randint(0, 2, (2, 3, 4))
    loss = BinaryCrossEntropy()(Outputs(logits, targets, torch.ones(2, 3, dtype=torch.bool)))
    torch.testing.assert_close(loss, F.binary_cross_entropy_with_logits(logits, targets.float()))


def test_targets_that_are_names_are_refused():
    outputs = Outputs(torch.zeros(1, 2, 3), torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(zoo.ZooError, match=r"targets are \[1, 2\] and logits \[1, 2, 3\]"):
        BinaryCrossEntropy()(outputs)


def test_an_objective_names_the_extra_it_misses():
    outputs = Outputs(torch.zeros(1, 1, 2), torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(zoo.ZooError, match="objective 'x' needs 'kl' of the model, which gives n"):
        outputs.get_extra("kl", "x")
