import gc
from dataclasses import replace

import pytest
import torch

from zoo.plugin import Mask
from zoo_fast.attention import masks
from zoo_fast.attention.masks import additive_mask, is_causal_only, without_full_keys


def test_keys_without_padding_are_removed():
    keys = torch.ones(2, 3, dtype=torch.bool)
    padded = Mask(keys=torch.tensor([[True, False]]), causal=True)

    assert is_causal_only(without_full_keys(Mask(keys=keys, causal=True)))
    assert without_full_keys(padded) is padded
    assert without_full_keys(Mask(keys=keys.to("meta"))).keys is not None


def test_an_additive_mask_has_the_bias_and_minus_infinity_at_masked_keys():
    bias, like = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.zeros((), dtype=torch.bfloat16)
    mask = Mask(causal=True, bias=bias)

    additive = additive_mask(mask, 2, 2, like)

    assert additive.dtype is torch.bfloat16
    assert additive.tolist() == [[[[1, float("-inf")], [3, 4]]]]
    assert additive_mask(mask, 2, 2, like) is additive
    assert additive_mask(Mask(causal=True), 2, 2, like) is None


def test_an_additive_mask_with_a_gradient_is_computed_for_each_layer():
    bias = torch.ones(1, 2, 2, requires_grad=True)
    mask, like = Mask(causal=True, bias=bias), torch.zeros(())

    assert additive_mask(mask, 2, 2, like) is not additive_mask(mask, 2, 2, like)


@pytest.mark.parametrize("has_padding", [False, True])
def test_the_keys_are_read_once_for_all_layers(monkeypatch, has_padding):
    keys = torch.ones(2, 3, dtype=torch.bool)
    keys[0, 2] = not has_padding
    mask, reads = Mask(keys=keys), []
    simplify = masks._simplify
    monkeypatch.setattr(masks, "_simplify", lambda mask: reads.append(mask.keys) or simplify(mask))

    results = [without_full_keys(mask) for _ in range(4)]

    assert len(reads) == 1
    assert all(result is results[0] for result in results)
    assert (results[0] is mask) == has_padding


def test_another_mask_of_the_same_tensor_is_computed_again():
    keys = torch.ones(1, 3, dtype=torch.bool)
    mask = Mask(keys=keys)
    assert without_full_keys(mask).keys is None

    keys[0, 2] = False

    other = replace(mask)
    assert without_full_keys(other) is other


@pytest.mark.parametrize("has_padding", [False, True])
def test_results_are_deleted_with_their_mask(has_padding):
    keys = torch.tensor([[True, not has_padding]])
    mask, like = Mask(keys=keys, bias=torch.zeros(1, 2, 2)), torch.zeros(())
    before = len(masks._KEPT)
    additive_mask(without_full_keys(mask), 2, 2, like)
    assert len(masks._KEPT) > before

    del mask
    gc.collect()

    assert len(masks._KEPT) <= before


def test_a_bias_of_each_item_has_its_own_mask():
    keys, bias = torch.tensor([[True, False], [True, True]]), torch.randn(2, 3, 1, 2)
    found = additive_mask(Mask(keys=keys, bias=bias), 1, 2, bias)
    assert torch.equal(found, bias.masked_fill(~keys[:, None, None], float("-inf")))
