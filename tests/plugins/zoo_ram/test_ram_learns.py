"""Training RAM: classification accuracy and learned locations."""

import pytest
import torch
from digits_kit import GLYPHS, digits

import zoo
from zoo_ram.hybrid_reinforce import HybridReinforce
from zoo_ram.ram import RAM

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("seed", [0, 1, 2])]


def compose(seed: int, **model) -> RAM:
    model = {"type": "ram", "classes": 10, **model}
    return zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=seed)


def train(model: RAM, images, labels, *, steps: int, lr: float, seed: int) -> None:
    objective, optimizer = HybridReinforce(), torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    torch.manual_seed(seed)
    model.train()
    for _ in range(steps):
        index = torch.randint(0, len(images), (64,))
        loss = objective(model({"source": images[index], "target": labels[index]}))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
    model.eval()


def test_accuracy_at_unseen_positions_is_95_percent(seed):
    images, labels = digits(side=20, scale=3)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    train_rows, test_rows = order[:540], order[540:]
    retina = {"size": 8, "scales": 2}
    model = compose(
        seed, retina=retina, glimpses=4, glimpse_hidden=64, location_hidden=32, hidden=64
    )

    train(model, images[train_rows], labels[train_rows], steps=2000, lr=1.5e-3, seed=seed)

    outputs = model({"source": images[test_rows], "target": labels[test_rows]})
    accuracy = (outputs.logits[:, 0].argmax(dim=-1) == labels[test_rows]).float().mean().item()
    assert len(test_rows) == 180
    assert accuracy >= 0.95, accuracy


def test_the_reward_moves_the_second_location_to_the_digits(seed):
    """All digits are in one corner, outside the first glimpse at the centre."""
    images, labels = torch.zeros(10, 1, 20, 20), torch.arange(10)
    images[:, 0, 2:7, 14:17] = GLYPHS
    digit = torch.tensor([0.55, -0.55])  # centre of the digits
    model = compose(
        seed,
        retina={"size": 6},
        glimpses=2,
        glimpse_hidden=32,
        location_hidden=16,
        hidden=32,
        std=0.3,
        start="centre",
    )

    def distance():
        """Return the distance of the second location from the digits; the image has side 2."""
        locations = model.eval()({"source": images, "target": labels}).extras["locations"]
        return (locations[:, 1] - digit).norm(dim=-1).max().item()

    assert distance() > 0.6
    train(model, images, labels, steps=1500, lr=3e-3, seed=seed)
    assert distance() < 0.15, distance()
