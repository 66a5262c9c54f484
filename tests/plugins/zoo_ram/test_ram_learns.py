"""RAM learns to name, and where to look."""

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


def train(model: RAM, images, names, *, steps: int, lr: float, seed: int) -> None:
    objective, optimizer = HybridReinforce(), torch.optim.Adam(model.parameters(), lr=lr)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    torch.manual_seed(seed)
    model.train()
    for _ in range(steps):
        index = torch.randint(0, len(images), (64,))
        loss = objective(model({"source": images[index], "target": names[index]}))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        slower.step()
    model.eval()


def test_it_names_95_percent_of_digits_where_it_never_saw_them(seed):
    images, names = digits(side=20, scale=3)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    seen, unseen = order[:540], order[540:]
    retina = {"size": 8, "scales": 2}
    model = compose(seed, retina=retina, glimpses=4, what=64, where=32, hidden=64)

    train(model, images[seen], names[seen], steps=2000, lr=1.5e-3, seed=seed)

    said = model({"source": images[unseen], "target": names[unseen]}).logits[:, 0].argmax(dim=-1)
    accuracy = (said == names[unseen]).float().mean().item()
    assert len(unseen) == 180
    assert accuracy >= 0.95, accuracy


def test_reward_alone_moves_the_gaze_to_what_tells(seed):
    """All digits are in one corner, out of sight from the centre where it starts."""
    images, names = torch.zeros(10, 1, 20, 20), torch.arange(10)
    images[:, 0, 2:7, 14:17] = GLYPHS
    digit = torch.tensor([0.55, -0.55])  # the middle of where they are
    model = compose(
        seed, retina={"size": 6}, glimpses=2, what=32, where=16, hidden=32, std=0.3, start="centre"
    )

    def distance():
        """How far the second look is from the digits, the image's side being 2."""
        locations = model.eval()({"source": images, "target": names}).extras["locations"]
        return (locations[:, 1] - digit).norm(dim=-1).max().item()

    assert distance() > 0.6
    train(model, images, names, steps=1500, lr=3e-3, seed=seed)
    assert distance() < 0.15, distance()
