import pytest
import torch
from attention_kit import build, randn

import zoo
from zoo.plugin import Blueprint, Mask
from zoo_positions.alibi import ALiBi
from zoo_positions.disentangled import Disentangled
from zoo_positions.gated import Gated

WIDTHS = {"dim": 6, "heads": 2, "head_dim": 3}
KEYS = torch.arange(5) < torch.tensor([[5], [2]])


def reference(attention, position, x, mask):
    """Return the context with the score bias computed on its own."""
    queries, keys = attention.project_queries(x), attention.project_keys(x)
    bias = attention.score_bias(attention, position, x, queries, keys)
    return attention(x, x, Mask(keys=mask, bias=bias)).context


@pytest.mark.parametrize("kind", ["disentangled", "gated"])
def test_a_score_bias_is_added_to_the_scores(kind):
    attention, x = build(heads=2), randn(2, 5, 6)
    position = Disentangled(**WIDTHS, max_distance=3)
    if kind == "gated":
        position = Gated(**WIDTHS, causal=False, position=Blueprint.of(ALiBi))
    attention.set_position(position)
    found = attention(x, x, Mask(keys=KEYS), position=position).context
    torch.testing.assert_close(found, reference(attention, position, x, KEYS))
    assert not torch.allclose(found, attention(x, x, Mask(keys=KEYS)).context, atol=1e-4)


def test_a_bias_of_the_mask_is_kept():
    attention, x, bias = build(heads=2), randn(2, 5, 6), randn(2, 5, 5)
    position = Disentangled(**WIDTHS, max_distance=3)
    attention.set_position(position)
    queries, keys = attention.project_queries(x), attention.project_keys(x)
    own = attention.score_bias(attention, position, x, queries, keys)
    expected = attention(x, x, Mask(bias=bias + own)).context
    found = attention(x, x, Mask(bias=bias), position=position).context
    torch.testing.assert_close(found, expected)


def test_a_position_that_was_not_set_raises():
    attention, x = build(heads=2), randn(2, 5, 6)
    with pytest.raises(zoo.ZooError, match="'disentangled' has a bias in each attention; call"):
        attention(x, x, position=Disentangled(**WIDTHS))


def test_a_score_that_is_no_inner_product_raises():
    with pytest.raises(zoo.ZooError, match="'disentangled' compares positions with queries"):
        build("additive", heads=2).set_position(Disentangled(**WIDTHS))
