import math

import pytest
import torch

from zoo_ctc.ctc_greedy import CtcGreedy


def frames(*paths):
    """Return frames of four labels in which those of the paths have probability 0.7."""
    one_hot = torch.nn.functional.one_hot(torch.tensor(paths), 4).double()
    return (0.1 + 0.6 * one_hot).log()


def test_known_values():
    logprobs = frames([0, 1, 1, 0, 1, 2], [3, 3, 3, 3, 3, 3], [0, 0, 0, 0, 0, 0])
    mask = torch.arange(6) < torch.tensor([[6], [2], [4]])
    decoded = CtcGreedy().decode_frames(logprobs, mask, blank=0, pad=0)
    assert decoded.tokens.tolist() == [[[1, 1, 2]], [[3, 0, 0]], [[0, 0, 0]]]
    expected = [[n * math.log(0.7)] for n in (6, 2, 4)]
    assert decoded.scores.tolist() == [pytest.approx(row) for row in expected]


def test_another_blank_and_another_padding():
    logprobs = frames([3, 0, 0, 3, 0, 1])
    decoded = CtcGreedy().decode_frames(logprobs, torch.ones(1, 6).bool(), blank=3, pad=7)
    assert decoded.tokens.tolist() == [[[0, 0, 1]]]
    decoded = CtcGreedy().decode_frames(logprobs, torch.zeros(1, 6).bool(), blank=3, pad=7)
    assert decoded.tokens.tolist() == [[[7]]]
    assert decoded.scores.tolist() == [[0.0]]


def test_no_frames_and_no_items():
    no_frames = CtcGreedy().decode_frames(
        torch.zeros(2, 0, 4), torch.zeros(2, 0).bool(), blank=0, pad=0
    )
    assert no_frames.tokens.tolist() == [[[0]], [[0]]]
    no_items = CtcGreedy().decode_frames(
        torch.zeros(0, 5, 4), torch.zeros(0, 5).bool(), blank=0, pad=0
    )
    assert no_items.tokens.shape == (0, 1, 1)
