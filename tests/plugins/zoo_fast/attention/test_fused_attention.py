"""When attention is accelerated, and why not."""

import pytest
import torch
from attention_kit import build, lengths_mask, randn
from torch import Tensor

from zoo import accelerate, compose, recording
from zoo.acceleration.conditions import why_not
from zoo.plugin import Alignment, AlignmentContext, Blueprint, Mask
from zoo_alignment.soft import Soft
from zoo_fast.attention.fused_attention import AdditiveAttention, InnerProductAttention
from zoo_transformer.scaled_dot import ScaledDot

CPU = torch.device("cpu")
CAPPED = Blueprint.of(ScaledDot, cap=2.0)


class Uniform(Alignment):
    """Uniform weights over the keys that are not masked."""

    name = "uniform"

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        valid = torch.ones_like(scores) if mask is None else mask.expand_as(scores).to(scores)
        return valid / valid.sum(dim=-1, keepdim=True).clamp(min=1)


class Doubled(ScaledDot):
    """A subclass with another score."""

    name = "doubled"

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return 2 * super().score(query, prepared)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scorer", ["dot", "scaled-dot", "general"])
def test_inner_products_with_softmax_are_accelerated(scorer, heads):
    attention = build(scorer, heads=heads)
    assert why_not(InnerProductAttention(), attention, CPU) is None


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"align": Blueprint.of(Uniform)}, "alignment 'uniform' is not known as a softmax"),
        ({"scorer": "additive"}, "scorer 'additive' is not known as an inner product"),
        ({"align": Blueprint.of(Soft, sink=True)}, "the softmax has a sink"),
        ({"scorer": CAPPED}, "the scores of 'scaled-dot' have a cap"),
        ({"scorer": Blueprint.of(Doubled)}, "scorer 'doubled' is not known as an inner product"),
    ],
    ids=["alignment", "scorer", "sink", "cap", "subclass"],
)
def test_other_parts_use_the_reference_path(form, reason):
    assert why_not(InnerProductAttention(), build(**form), CPU) == reason


def test_additive_scores_need_triton(monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "off")
    assert AdditiveAttention().why_not(build("additive"), CPU) == "ZOO_TRITON is 'off'"
    assert AdditiveAttention().why_not(build("dot"), CPU) == "scorer 'dot' is not additive"


def test_recorded_weights_and_hooks_use_the_reference_path():
    attention = build()
    with recording(attention):
        assert "recorded" in str(why_not(InnerProductAttention(), attention, CPU))
    handle = attention.scorers.register_forward_hook(lambda *_: None)
    assert "module hooks" in str(why_not(InnerProductAttention(), attention, CPU))
    handle.remove()
    assert why_not(InnerProductAttention(), attention, CPU) is None


def test_a_subclass_of_a_known_scorer_keeps_its_own_score():
    attention = build(Blueprint.of(Doubled))
    states = randn(2, 3, 6)
    expected = attention(states, states).context
    assert torch.equal(accelerate(attention)(states, states).context, expected)


def test_weights_and_states_are_those_of_the_reference_path():
    attention = accelerate(build(heads=2))
    query, memory = randn(2, 1, 6), randn(2, 4, 6, seed=2)
    context, state, weights = attention(query, memory, state={}, return_weights=True)
    assert weights.shape == (2, 2, 1, 4)
    attended = attention(query, memory, state={})
    assert (attended.state, attended.weights, state) == ({}, None, {})
    torch.testing.assert_close(attended.context, context)


def test_uniform_weights_average_the_keys():
    attention = accelerate(build(align=Blueprint.of(Uniform)))
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)

    context = attention(query, memory, Mask(keys=lengths_mask(4, 2, S=4))).context

    expected = torch.stack([memory[0].mean(dim=0), memory[1, :2].mean(dim=0)])
    torch.testing.assert_close(context, expected[:, None].expand(-1, 3, -1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("spec", ["transformer-tiny", "gpt2-tiny"])
def test_an_accelerated_model_compiles_without_graph_breaks(spec, device):
    model = accelerate(compose(spec, device=device)).eval()
    example = model.example(3, 5, torch.Generator().manual_seed(0))
    batch = {key: value.to(device) for key, value in example.items()}
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).logits, model(batch).logits)


def test_scales_and_caps_of_scores_are_not_ignored():
    for params in ({"scale": 0.7}, {"cap": 0.5}):
        attention = build(Blueprint.of(ScaledDot, **params), heads=2)
        states = 3 * randn(2, 3, 6)
        expected = attention(states, states).context
        assert not torch.allclose(build(heads=2)(states, states).context, expected)
        torch.testing.assert_close(accelerate(attention)(states, states).context, expected)


def test_a_sink_of_the_weights_is_not_ignored():
    attention = build(align=Blueprint.of(Soft, sink=True), heads=2)
    states = 3 * randn(2, 3, 6)
    expected = attention(states, states).context
    assert not torch.allclose(build(heads=2)(states, states).context, expected)
    assert torch.equal(accelerate(attention)(states, states).context, expected)
