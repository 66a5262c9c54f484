import torch
import torch.nn.functional as F

from zoo import Outputs
from zoo_objectives.contrastive import Contrastive


def outputs(logits):
    labels = torch.arange(len(logits))[:, None]
    return Outputs(logits[:, None], labels, torch.ones_like(labels, dtype=torch.bool))


def test_known_value():
    """Two pairs with the logits ((2, 0), (1, 3)): the mean over rows and columns."""
    loss = Contrastive()(outputs(torch.tensor([[2.0, 0.0], [1.0, 3.0]])))
    rows = [torch.tensor([0.0, -2.0]), torch.tensor([-2.0, 0.0])]
    columns = [torch.tensor([0.0, -1.0]), torch.tensor([-3.0, 0.0])]
    expected = sum(x.logsumexp(dim=0) for x in (*rows, *columns)) / 4
    torch.testing.assert_close(loss, expected)


def test_it_is_the_loss_of_clip():
    logits = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(5)
    expected = (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets)) / 2
    torch.testing.assert_close(Contrastive()(outputs(logits)), expected)
