"""A digit moves; the caption says which, and where to."""

import pytest
import torch
from caption_kit import correct_tokens, moving_digits, train_model


def cases(count: int, seed: int):
    return moving_digits(count, generator=torch.Generator().manual_seed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_to_tell_what_moves_and_where_to(seed):
    model = train_model("video-tiny", cases(2000, seed), seed=seed, steps=250)

    assert correct_tokens(model, cases(500, 99)).all(dim=1).float().mean() >= 0.95


@pytest.mark.slow
def test_without_motion_it_cannot_tell_there_from_back():
    changes = ("model.source.motion=null",)

    model = train_model("video-tiny", cases(2000, 0), seed=0, steps=250, changes=changes)

    what, where, end = correct_tokens(model, cases(500, 99)).float().mean(dim=0).tolist()
    assert what >= 0.95
    assert end >= 0.95
    assert where <= 0.75
