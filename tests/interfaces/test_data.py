from dataclasses import replace

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


def test_dense_mask_without_parts_is_none():
    assert Mask().dense(3, 5, torch.device("cpu")) is None


def test_a_dense_mask_is_computed_once_for_each_size():
    mask = Mask(causal=True)
    dense = mask.dense(3, 5, torch.device("cpu"))

    assert mask.dense(3, 5, torch.device("cpu")) is dense
    assert mask.dense(2, 5, torch.device("cpu")).shape == (1, 2, 5)
    shifted = replace(mask, offset=1).dense(3, 5, torch.device("cpu"))
    assert shifted.tolist() == [torch.ones(3, 5).tril(1).bool().tolist()]


def test_keys_without_padding_are_removed():
    keys = torch.ones(2, 3, dtype=torch.bool)
    padded = Mask(keys=torch.tensor([[True, False]]), causal=True)

    assert Mask(keys=keys, causal=True).simplified().is_causal_only
    assert padded.simplified() is padded
    assert Mask(keys=keys.to("meta")).simplified().keys is not None


def test_an_additive_mask_has_the_bias_and_minus_infinity_at_masked_keys():
    bias, like = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.zeros((), dtype=torch.bfloat16)
    mask = Mask(causal=True, bias=bias)

    additive = mask.additive(2, 2, like)

    assert additive.dtype is torch.bfloat16
    assert additive.tolist() == [[[[1, float("-inf")], [3, 4]]]]
    assert mask.additive(2, 2, like) is additive
    assert Mask(causal=True).additive(2, 2, like) is None


def test_an_additive_mask_with_a_gradient_is_computed_for_each_layer():
    bias = torch.ones(1, 2, 2, requires_grad=True)
    mask, like = Mask(causal=True, bias=bias), torch.zeros(())

    assert mask.additive(2, 2, like) is not mask.additive(2, 2, like)
