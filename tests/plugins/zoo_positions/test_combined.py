import copy

import pytest
import torch
import transformers as hf
from attention_kit import build as build_attention

import zoo
from zoo.plugin import Blueprint
from zoo_positions.alibi import ALiBi
from zoo_positions.combined import Combined
from zoo_positions.disentangled import Disentangled
from zoo_positions.gated import Gated
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.t5 import T5
from zoo_sampling.greedy import Greedy

GATED = Blueprint.of(Gated, position=Blueprint.of(T5))
WIDTHS = {"dim": 8, "heads": 2, "head_dim": 4, "causal": False}


def build(*parts: Blueprint) -> Combined:
    return Combined(**WIDTHS, parts=parts).eval()


def test_known_values_of_each_operation():
    position = build(
        Blueprint.of(Learned, length=5),
        Blueprint.of(Learned, length=9),
        Blueprint.of(ALiBi),
        Blueprint.of(ALiBi),
    )
    first, second, alibi, _ = position.parts
    states = torch.randn(2, 3, 8)

    added = position("add", states, offset=1)
    bias = position("bias", states, states)

    expected = states + first.table.weight[1:4] + second.table.weight[1:4]
    torch.testing.assert_close(added, expected)
    torch.testing.assert_close(bias, 2 * alibi("bias", states, states))
    assert position.max_positions == 5
    assert position.has_bias
    assert not position.is_rotary
    queries = torch.randn(2, 2, 3, 4)
    assert torch.equal(position("rotate", queries), queries)


def test_a_rotation_is_that_of_its_part():
    position = build(Blueprint.of(Learned, length=5), Blueprint.of(Rotary))
    queries = torch.randn(2, 2, 3, 4)
    rotated = position("rotate", queries, offset=2)
    torch.testing.assert_close(rotated, position.parts[1]("rotate", queries, offset=2))
    assert position.is_rotary
    assert not position.has_bias
    assert position("bias", queries, queries) is None


def test_bias_of_mpnet_for_long_distances():
    config = hf.MPNetConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    theirs = hf.MPNetModel(config).eval().encoder
    position = build(Blueprint.of(Learned, length=400), Blueprint.of(T5))
    with torch.no_grad():
        position.parts[1].table.weight.copy_(theirs.relative_attention_bias.weight)
    states = torch.zeros(1, 300, 8)
    expected = theirs.compute_position_bias(states)[0]
    assert torch.equal(position("bias", states, states), expected)


def test_no_parts_raise():
    with pytest.raises(zoo.ZooError, match="parts is empty"):
        build()


def test_score_biases_are_those_of_the_parts():
    position = build(Blueprint.of(Disentangled, max_distance=4), Blueprint.of(ALiBi), GATED)
    bias = position.build_score_bias(8)
    states, queries = torch.randn(2, 5, 8), torch.randn(2, 2, 5, 4)
    attention = build_attention("scaled-dot", 8, 8, heads=2)
    found = bias(attention, position, states, queries, queries, offset=2)
    expected = sum(
        bias.parts[i](attention, position.parts[int(i)], states, queries, queries, offset=2)
        for i in ("0", "2")
    )
    torch.testing.assert_close(found, expected)
    assert position.has_bias
    assert position.has_score_bias
    assert position.requires_inner_product
    assert not build(Blueprint.of(ALiBi)).has_score_bias


@pytest.mark.parametrize(
    "parts",
    [
        ["rotary", {"type": "learned", "length": 20}],
        ["alibi", "t5"],
        ["alibi", {"type": "disentangled", "max_distance": 3}, {"type": "gated", "position": "t5"}],
    ],
)
def test_accelerated_generation_has_the_same_tokens(parts):
    decoder = {
        "type": "transformer",
        "layers": 2,
        "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
        "feed_forward": {"hidden": 12},
        "position": {"type": "combined", "parts": parts},
    }
    embedding = {"type": "token", "vocab": 11, "dim": 8}
    model = {"type": "language-model", "embedding": embedding, "decoder": decoder, "eos": 2}
    plain = zoo.compose({"zoo": 1, "name": "test", "model": model}, seed=2).eval()
    fast = zoo.accelerate(copy.deepcopy(plain))
    batch = {"prompt": torch.tensor([[3, 4, 5], [6, 7, 0]])}
    with torch.no_grad():
        expected = plain.generate(batch, Greedy(), max_length=8)
        found = fast.generate(batch, Greedy(), max_length=8)
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-5, rtol=0)
