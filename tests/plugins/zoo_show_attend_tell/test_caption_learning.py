"""Digits somewhere on a canvas, told from left to right."""

import pytest
import torch
from glyph_kit import captioned, right, taught

import zoo

SEEDS = (0, 1, 2)


def cases(count: int, seed: int):
    return captioned(count, generator=torch.Generator().manual_seed(seed))


def looked_at(model: zoo.Model, data: dict, where: torch.Tensor) -> float:
    """How often the place looked at most is the cell of the digit that is told."""
    with zoo.recording(model) as log, torch.no_grad():
        model(data)
    looks = torch.cat(log["decoder.attention"], dim=2)[:, 0].argmax(dim=-1)[:, :3]
    return (looks == where)[where >= 0].float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_soft_looks_learn_to_tell_digits_and_lie_on_the_digit_told(seed):
    data, _ = cases(4000, seed)
    unseen, where = cases(500, 99)

    model = taught("show-attend-tell-soft-tiny", data, seed=seed, steps=400)

    assert right(model, unseen).all(dim=1).float().mean() >= 0.95
    assert looked_at(model, unseen, where) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_hard_looks_learn_to_tell_digits(seed):
    data, _ = cases(4000, seed)
    unseen, _ = cases(500, 99)

    model = taught("show-attend-tell-hard-tiny", data, seed=seed, steps=1300)

    assert right(model, unseen).all(dim=1).float().mean() >= 0.9
