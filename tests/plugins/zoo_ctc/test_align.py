"""Forced alignment compared with enumeration of all paths."""

import itertools
import math

import pytest
import torch

from zoo import ZooError
from zoo_ctc.align import align

LABEL_SEQUENCES = [y for n in range(4) for y in itertools.product((1, 2), repeat=n)]


def full_mask(tensor):
    return torch.ones(tensor.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_matches_the_best_of_all_paths(T):
    torch.manual_seed(T)
    for labels in LABEL_SEQUENCES:
        logits = torch.randn(1, T, 3, dtype=torch.float64)
        target = torch.tensor([labels], dtype=torch.long).reshape(1, -1)
        alignment = align(logits, full_mask(logits), target, full_mask(target))
        logprobs = logits[0].log_softmax(dim=-1)
        best = (-math.inf, [0] * T)
        for path in itertools.product(range(3), repeat=T):
            if tuple(s for s, _ in itertools.groupby(path) if s) == labels:
                best = max(best, (sum(logprobs[t, s].item() for t, s in enumerate(path)), path))
        assert alignment.logprob.item() == pytest.approx(best[0])
        assert alignment.labels[0].tolist() == list(best[1])


def test_spans_are_the_frames_of_each_label():
    path = [0, 1, 1, 0, 1, 2, 2, 0]
    logits = torch.nn.functional.one_hot(torch.tensor([path, path]), 3).double() * 9
    mask = torch.arange(8) < torch.tensor([[8], [6]])
    targets = torch.tensor([[1, 1, 2, 0], [1, 1, 2, 0]])
    alignment = align(logits, mask, targets, targets != 0)
    assert alignment.labels.tolist() == [path, [*path[:6], 0, 0]]
    assert alignment.spans.tolist() == [
        [[1, 3], [4, 5], [5, 7], [0, 0]],
        [[1, 3], [4, 5], [5, 6], [0, 0]],
    ]


def test_another_blank_and_half_precision():
    torch.manual_seed(0)
    logits = torch.randn(1, 7, 4).bfloat16()
    targets = torch.tensor([[0, 3, 0]])
    alignment = align(logits, full_mask(logits), targets, full_mask(targets), blank=2)
    labels = [s for s, _ in itertools.groupby(alignment.labels[0].tolist()) if s != 2]
    assert labels == [0, 3, 0]
    assert alignment.logprob.dtype is torch.float32


def test_labels_without_a_path_have_logprob_minus_inf_and_empty_spans():
    logits = torch.zeros(1, 3, 3)
    targets = torch.tensor([[1, 1, 2]])
    alignment = align(logits, full_mask(logits), targets, full_mask(targets))
    assert alignment.logprob.tolist() == [-math.inf]
    assert alignment.labels.tolist() == [[0, 0, 0]]
    assert alignment.spans.tolist() == [[[0, 0]] * 3]


def test_no_frames():
    logits = torch.zeros(2, 0, 3)
    targets = torch.tensor([[1], [0]])
    alignment = align(logits, full_mask(logits), targets, targets != 0)
    assert alignment.logprob.tolist() == [-math.inf, 0.0]
    assert alignment.labels.shape == (2, 0)
    assert alignment.spans.tolist() == [[[0, 0]], [[0, 0]]]


def test_a_blank_in_the_targets_raises():
    targets = torch.tensor([[0]])
    with pytest.raises(ZooError, match=r"blank \(0\)"):
        align(torch.zeros(1, 2, 3), torch.ones(1, 2).bool(), targets, full_mask(targets))
