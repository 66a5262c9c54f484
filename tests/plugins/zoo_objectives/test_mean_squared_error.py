import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import Outputs
from zoo_objectives.mean_squared_error import MeanSquaredError


def test_known_value_and_masked_positions():
    logits, targets = torch.tensor([[[1.0, 2.0], [9.0, 9.0]]]), torch.tensor([[[3.0, 2.0], [0, 0]]])
    loss = MeanSquaredError()(Outputs(logits, targets, torch.tensor([[True, False]])))
    assert loss.item() == 2.0  # (4 + 0) / 2


def test_loss_without_masked_positions_matches_torch():
    logits, targets = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    loss = MeanSquaredError()(Outputs(logits, targets, torch.ones(2, 3, dtype=torch.bool)))
    torch.testing.assert_close(loss, F.mse_loss(logits, targets))


def test_class_targets_raise():
    outputs = Outputs(torch.zeros(1, 2, 3), torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(zoo.ZooError, match=r"one number per logit.*\[1, 2\]"):
        MeanSquaredError()(outputs)
