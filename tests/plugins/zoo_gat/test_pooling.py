import math

import pytest
import torch

import zoo
from zoo_gat.pooling import AttentionPooling, NodePooling

STATES = torch.tensor([[[1.0, -2.0], [3.0, -6.0], [100.0, 100.0]]])
MASK = torch.tensor([[True, True, False]])


@pytest.mark.parametrize(
    ("pooling", "expected"), [("mean", [2.0, -4.0]), ("sum", [4.0, -8.0]), ("max", [3.0, -2.0])]
)
def test_known_values(pooling, expected):
    """Padding is excluded, also where it is not finite; without valid nodes the vector is 0."""
    pool = NodePooling(pooling)
    assert pool(STATES, MASK).tolist() == [expected]
    assert pool(STATES.masked_fill(~MASK[..., None], math.nan), MASK).tolist() == [expected]
    assert pool(STATES, ~MASK | MASK).tolist() != [expected]
    assert pool(STATES, torch.zeros_like(MASK)).tolist() == [[0.0, 0.0]]


def _attention(scorer):
    encoder = {"type": "graph-attention", "layers": 1, "hidden": 2, "attention": {"scorer": "gat"}}
    model = {
        "type": "graph-classifier",
        "features": 2,
        "classes": 2,
        "encoder": encoder,
        "pooling": "attention",
        "scorer": scorer,
    }
    pool = zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=0).pool
    assert isinstance(pool, AttentionPooling)
    return pool


def test_known_values_of_attention():
    """Scores 0 and ln 3 have the weights 1/4 and 3/4."""
    pool = _attention("dot")
    with torch.no_grad():
        pool.query.copy_(torch.tensor([math.log(3) / 2, 0.0]))
    expected = torch.tensor([[0.25 * 1 + 0.75 * 3, 0.25 * -2 + 0.75 * -6]])
    for padding in (100.0, math.nan):
        states = STATES.masked_fill(~MASK[..., None], padding)
        torch.testing.assert_close(pool(states, MASK), expected)
    with zoo.recording(pool) as weights:
        pool(STATES, MASK)
    torch.testing.assert_close(weights[""][0], torch.tensor([[[[0.25, 0.75, 0.0]]]]))
    assert pool(STATES, torch.zeros_like(MASK)).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("scorer", ["dot", "general", "gatv2", {"type": "additive", "hidden": 4}])
def test_attention_with_equal_scores_is_the_mean(scorer):
    pool = _attention(scorer)
    states = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True, True, False, True], [True, False, False, False]])
    mean = NodePooling("mean")(states, mask)
    assert not torch.allclose(pool(states, mask)[0], mean[0])
    with torch.no_grad():
        for parameter in pool.parameters():
            parameter.zero_()
    torch.testing.assert_close(pool(states, mask), mean)
