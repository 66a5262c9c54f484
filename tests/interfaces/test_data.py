from dataclasses import replace

import pytest
import torch
from attention_kit import lengths_mask, randn

from zoo.plugin import Mask


def test_dense_mask_is_the_conjunction_of_its_parts():
    keys = lengths_mask(5, 2, S=5)
    pairs = randn(2, 3, 5) > 0

    dense = Mask(keys=keys, causal=True, offset=1, pairs=pairs).dense(3, 5, torch.device("cpu"))

    for b in range(2):
        for t in range(3):
            for s in range(5):
                assert dense[b, t, s] == (keys[b, s] and pairs[b, t, s] and s <= 1 + t)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("offset", [0, 4, torch.tensor(4)])
def test_a_window_masks_keys_at_its_distance(causal, offset):
    mask = Mask(causal=causal, offset=offset).with_window(2)
    dense = mask.dense(2, 5, torch.device("cpu"))
    for t in range(2):
        for s in range(5):
            distance = int(offset) + t - s
            assert dense[0, t, s] == (abs(distance) < 2 and (distance >= 0 or not causal))


def test_a_window_of_all_keys_masks_none():
    cpu = torch.device("cpu")
    assert Mask(causal=True, offset=4, window=5).dense(1, 5, cpu) is None
    # The causal part masks no key of the last query; the window does.
    assert Mask(causal=True, offset=4, window=4).dense(1, 5, cpu).tolist() == [
        [[False, True, True, True, True]]
    ]
    mask = Mask(causal=True)
    assert mask.with_window(3) is mask.with_window(3)


def test_dense_mask_without_parts_is_none():
    assert Mask().dense(3, 5, torch.device("cpu")) is None


def test_a_dense_mask_is_computed_once_for_each_size():
    mask = Mask(causal=True)
    dense = mask.dense(3, 5, torch.device("cpu"))

    assert mask.dense(3, 5, torch.device("cpu")) is dense
    assert mask.dense(2, 5, torch.device("cpu")).shape == (1, 2, 5)
    shifted = replace(mask, offset=1).dense(3, 5, torch.device("cpu"))
    assert shifted.tolist() == [torch.ones(3, 5).tril(1).bool().tolist()]
