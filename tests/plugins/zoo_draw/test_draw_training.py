"""DRAW learns, and its bound stays one."""

import math

import pytest
import torch
from digits_kit import digits

import zoo
from zoo_draw.variational import Variational


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bound_falls_to_two_fifths_and_stays_above_the_entropy(seed):
    images, _ = digits(side=8, scale=1)
    model = zoo.compose(
        {
            "zoo": 1,
            "name": "test",
            "model": {"type": "draw", "height": 8, "width": 8, "steps": 6, "latent": 4,
                      "hidden": 64, "read": 3, "write": 3},
        },
        seed=seed,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)

    def bound():
        """The mean over all images and 20 draws of each."""
        return model.bound(images.repeat(20, 1, 1, 1), generator).mean().item()

    before = bound()
    objective, optimizer = Variational(), torch.optim.Adam(model.parameters(), lr=2e-3)
    torch.manual_seed(seed)
    model.train()
    for _ in range(800):
        index = torch.randint(0, len(images), (64,))
        loss = objective(model({"source": images[index]}))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()

    after = bound()
    # No model can surprise less, on average, than the images differ: they are all alike likely.
    assert len(images) == 240
    assert math.log(240) < after <= 0.4 * before, (before, after)
    # The means of the codes alone leave out what drawing them costs.
    assert Variational()(model({"source": images})).item() < after
