"""Training on images of digits, captioned from left to right."""

import pytest
import torch
from caption_kit import captioned_digits, correct_tokens, train_model

import zoo

SEEDS = (0, 1, 2)


def cases(count: int, seed: int):
    return captioned_digits(count, generator=torch.Generator().manual_seed(seed))


def attention_accuracy(model: zoo.Model, data: dict, cells: torch.Tensor) -> float:
    """Return how often the region with the highest weight is the cell of the predicted digit."""
    with zoo.recording(model) as log, torch.no_grad():
        model(data)
    regions = torch.cat(log["decoder.attention"], dim=2)[:, 0].argmax(dim=-1)[:, :3]
    return (regions == cells)[cells >= 0].float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_soft_attention_learns_digits_and_attends_to_each_digit(seed):
    data, _ = cases(4000, seed)
    unseen, cells = cases(500, 99)

    model = train_model("show-attend-tell-soft-tiny", data, seed=seed, steps=400)

    assert correct_tokens(model, unseen).all(dim=1).float().mean() >= 0.95
    assert attention_accuracy(model, unseen, cells) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_hard_attention_learns_digits(seed):
    data, _ = cases(4000, seed)
    unseen, _ = cases(500, 99)

    model = train_model("show-attend-tell-hard-tiny", data, seed=seed, steps=1300)

    assert correct_tokens(model, unseen).all(dim=1).float().mean() >= 0.9
