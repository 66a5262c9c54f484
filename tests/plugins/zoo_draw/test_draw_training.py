"""Training DRAW lowers the bound."""

import math

import pytest
import torch
from digits_kit import digits

import zoo
from zoo_draw.variational import Variational


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bound_falls_below_40_percent_and_stays_above_the_entropy(seed):
    images, _ = digits(side=8, scale=1)
    model = zoo.compose(
        {
            "zoo": 1,
            "name": "test",
            "model": {"type": "draw", "height": 8, "width": 8, "steps": 6, "latent": 4,
                      "hidden": 64, "read_size": 3, "write_size": 3},
        },
        seed=seed,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)

    def bound():
        """Return the mean over all images and 20 samples of each."""
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
    # The images are equally likely, so no model has a lower mean than the logarithm of their count.
    assert len(images) == 240
    assert math.log(240) < after <= 0.4 * before, (before, after)
    # With the means as latents, the loss has no sampling noise and is lower.
    assert Variational()(model({"source": images})).item() < after
