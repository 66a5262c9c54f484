"""Forced alignment against trying every path."""

import itertools
import math

import pytest
import torch

from zoo import ZooError
from zoo_ctc.align import align

LABELLINGS = [y for n in range(4) for y in itertools.product((1, 2), repeat=n)]


def full_mask(tensor):
    return torch.ones(tensor.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_the_path_is_the_best_of_all(T):
    torch.manual_seed(T)
    for labels in LABELLINGS:
        logits = torch.randn(1, T, 3, dtype=torch.float64)
        target = torch.tensor([labels], dtype=torch.long).reshape(1, -1)
        found = align(logits, full_mask(logits), target, full_mask(target))
        logprobs = logits[0].log_softmax(dim=-1)
        best = (-math.inf, [0] * T)
        for path in itertools.product(range(3), repeat=T):
            if tuple(s for s, _ in itertools.groupby(path) if s) == labels:
                best = max(best, (sum(logprobs[t, s].item() for t, s in enumerate(path)), path))
        assert found.logprob.item() == pytest.approx(best[0])
        assert found.labels[0].tolist() == list(best[1])


def test_spans_hold_the_frames_of_each_label():
    path = [0, 1, 1, 0, 1, 2, 2, 0]
    logits = torch.nn.functional.one_hot(torch.tensor([path, path]), 3).double() * 9
    mask = torch.arange(8) < torch.tensor([[8], [6]])
    targets = torch.tensor([[1, 1, 2, 0], [1, 1, 2, 0]])
    found = align(logits, mask, targets, targets != 0)
    assert found.labels.tolist() == [path, [*path[:6], 0, 0]]
    assert found.spans.tolist() == [
        [[1, 3], [4, 5], [5, 7], [0, 0]],
        [[1, 3], [4, 5], [5, 6], [0, 0]],
    ]


def test_another_blank_and_half_precision():
    torch.manual_seed(0)
    logits = torch.randn(1, 7, 4).bfloat16()
    targets = torch.tensor([[0, 3, 0]])
    found = align(logits, full_mask(logits), targets, full_mask(targets), blank=2)
    read = [s for s, _ in itertools.groupby(found.labels[0].tolist()) if s != 2]
    assert read == [0, 3, 0]
    assert found.logprob.dtype is torch.float32


def test_what_no_path_spells_has_no_probability_and_no_spans():
    logits = torch.zeros(1, 3, 3)
    targets = torch.tensor([[1, 1, 2]])
    found = align(logits, full_mask(logits), targets, full_mask(targets))
    assert found.logprob.tolist() == [-math.inf]
    assert found.labels.tolist() == [[0, 0, 0]]
    assert found.spans.tolist() == [[[0, 0]] * 3]


def test_no_frames_spell_nothing():
    logits = torch.zeros(2, 0, 3)
    targets = torch.tensor([[1], [0]])
    found = align(logits, full_mask(logits), targets, targets != 0)
    assert found.logprob.tolist() == [-math.inf, 0.0]
    assert found.labels.shape == (2, 0)
    assert found.spans.tolist() == [[[0, 0]], [[0, 0]]]


def test_the_blank_as_a_label_is_refused():
    targets = torch.tensor([[0]])
    with pytest.raises(ZooError, match=r"a target has the blank \(0\) as a label"):
        align(torch.zeros(1, 2, 3), torch.ones(1, 2).bool(), targets, full_mask(targets))
