"""Captioning of moving digits: the digit and its direction."""

import pytest
import torch
from caption_kit import correct_tokens, moving_digits, train_model


def make_clips(count: int, seed: int):
    return moving_digits(count, generator=torch.Generator().manual_seed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_learns_digit_and_direction(seed):
    model = train_model("video-tiny", make_clips(2000, seed), seed=seed, steps=250)

    assert correct_tokens(model, make_clips(500, 99)).all(dim=1).float().mean() >= 0.95


@pytest.mark.slow
def test_without_motion_the_direction_is_not_learned():
    changes = ("model.source.motion=null",)

    model = train_model("video-tiny", make_clips(2000, 0), seed=0, steps=250, changes=changes)

    digit, direction, eos = correct_tokens(model, make_clips(500, 99)).float().mean(dim=0).tolist()
    assert digit >= 0.95
    assert eos >= 0.95
    assert direction <= 0.75
