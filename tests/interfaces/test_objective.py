"""The weight of a loss: the number of terms it is a mean of."""

import pytest
import torch

from zoo import ZooError
from zoo.testing.tiny import TinyObjective


def test_by_default_the_weight_is_the_number_of_unmasked_positions():
    objective = TinyObjective()
    outputs = objective.examples()[0]
    assert objective.mergeable
    assert objective.weight(outputs).item() == outputs.mask.sum().item() == 7


def test_the_weight_of_an_objective_that_is_not_mergeable_raises():
    class Contrastive(TinyObjective):
        name = "contrastive"
        mergeable = False

    objective = Contrastive()
    with pytest.raises(ZooError, match=r"'contrastive'.*cannot be split.*'accumulate: 1'"):
        objective.weight(objective.examples()[0])


def test_gradients_of_parts_combine_to_the_gradient_of_the_batch():
    objective = TinyObjective()
    outputs = objective.examples()[0]
    logits = outputs.logits.requires_grad_()
    (expected,) = torch.autograd.grad(objective(outputs), logits)
    parts = [
        type(outputs)(logits[rows], outputs.targets[rows], outputs.mask[rows])
        for rows in (slice(1), slice(1, None))
    ]
    total = objective.weight(outputs)
    combined = sum(objective.weight(part) / total * objective(part) for part in parts)
    (found,) = torch.autograd.grad(combined, logits)
    torch.testing.assert_close(found, expected)
