"""Digits somewhere on a canvas, told from left to right."""

import pytest
import torch
from caption_kit import captioned_digits, correct_tokens, train_model

import zoo

SEEDS = (0, 1, 2)


def cases(count: int, seed: int):
    return captioned_digits(count, generator=torch.Generator().manual_seed(seed))


def attention_mass(model: zoo.Model, data: dict, where: torch.Tensor) -> float:
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

    model = train_model("show-attend-tell-soft-tiny", data, seed=seed, steps=400)

    assert correct_tokens(model, unseen).all(dim=1).float().mean() >= 0.95
    assert attention_mass(model, unseen, where) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_hard_looks_learn_to_tell_digits(seed):
    data, _ = cases(4000, seed)
    unseen, _ = cases(500, 99)

    model = train_model("show-attend-tell-hard-tiny", data, seed=seed, steps=1300)

    assert correct_tokens(model, unseen).all(dim=1).float().mean() >= 0.9
