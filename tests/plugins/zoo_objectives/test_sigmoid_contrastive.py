import math

import torch
import torch.nn.functional as F

from zoo import Outputs
from zoo_objectives.sigmoid_contrastive import SigmoidContrastive


def outputs(logits):
    labels = torch.arange(len(logits))[:, None]
    return Outputs(logits[:, None], labels, torch.ones_like(labels, dtype=torch.bool))


def test_known_value():
    """With all logits 0, each of the 2 x 2 pairs costs log 2; the mean is over the sources."""
    loss = SigmoidContrastive()(outputs(torch.zeros(2, 2)))
    torch.testing.assert_close(loss.item(), 2 * math.log(2))


def test_it_is_the_loss_of_siglip():
    logits = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    signs = 2 * torch.eye(5) - 1
    expected = -F.logsigmoid(signs * logits).sum(dim=-1).mean()
    torch.testing.assert_close(SigmoidContrastive()(outputs(logits)), expected)
