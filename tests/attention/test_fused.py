import pytest
import torch
from attention_kit import (
    CASES,
    PATHS,
    SCORERS,
    build,
    default_path,
    lengths_mask,
    randn,
    reference_path,
)
from torch import Tensor, nn

from zoo import recording
from zoo.plugin import Alignment, AlignmentContext, Blueprint, FromParent, Mask
from zoo_transformer.scaled_dot import ScaledDot

FUSED = [case for case in CASES if case.values[0] in ("dot", "scaled-dot")]
FUSED += [case for case in CASES if case.values[0] == "general" and case.values[1]["heads"] == 1]


class Uniform(Alignment):
    """Uniform weights over the keys that are not masked."""

    name = "uniform"

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        valid = torch.ones_like(scores) if mask is None else mask.expand_as(scores).to(scores)
        return valid / valid.sum(dim=-1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize(("scorer", "form"), FUSED)
def test_fused_path_matches_reference_path(scorer, form):
    attention = build(scorer, **form)
    query, memory = randn(3, 4, 6), randn(3, 5, 6, seed=2)
    for mask in (
        Mask(),
        Mask(keys=lengths_mask(5, 1, 3, S=5)),
        Mask(causal=True, offset=1),
        Mask(keys=lengths_mask(5, 1, 3, S=5), causal=True),
        Mask(pairs=randn(3, 4, 5, seed=3) > 0),
    ):
        torch.testing.assert_close(
            default_path(attention, query, memory, mask),
            reference_path(attention, query, memory, mask),
            rtol=0,
            atol=1e-6,
        )


class Counting(ScaledDot):
    """Scaled dot that counts the calls of its fused path."""

    name = "counting"
    fused_calls = 0

    def fused(
        self,
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Mask,
        *,
        dropout_p: float = 0.0,
    ) -> Tensor | None:
        self.fused_calls += 1
        return super().fused(query, prepared, values, mask, dropout_p=dropout_p)


@pytest.mark.parametrize("heads", [1, 2])
def test_fused_path_is_used_unless_weights_are_recorded(heads):
    attention = build(Blueprint.of(Counting), heads=heads)
    states = randn(1, 2, 6)

    attention(states, states)
    assert attention.scorers[0].fused_calls == 1
    with recording(attention):
        attention(states, states)
    assert attention.scorers[0].fused_calls == 1
    attention(states, states)
    assert attention.scorers[0].fused_calls == 2


class Tempered(ScaledDot):
    """Scaled dot with a learned temperature."""

    name = "tempered"

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.temperature = nn.Parameter(torch.rand(()))

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query * self.temperature, prepared)

    def fused(
        self,
        query: Tensor,
        prepared: Tensor,
        values: Tensor,
        mask: Mask,
        *,
        dropout_p: float = 0.0,
    ) -> Tensor | None:
        return super().fused(query * self.temperature, prepared, values, mask, dropout_p=dropout_p)


@pytest.mark.parametrize("heads", [1, 2])
def test_each_head_has_its_own_parameters_on_both_paths(heads):
    attention = build(Blueprint.of(Tempered), heads=heads)
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)

    torch.testing.assert_close(
        default_path(attention, query, memory, Mask()),
        reference_path(attention, query, memory, Mask()),
        rtol=0,
        atol=1e-6,
    )


def test_fused_path_is_not_used_for_other_alignments_than_softmax():
    attention = build(align=Blueprint.of(Uniform))
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)
    keys = lengths_mask(4, 2, S=4)

    context = attention(query, memory, Mask(keys=keys))

    expected = torch.stack([memory[0].mean(dim=0), memory[1, :2].mean(dim=0)])
    torch.testing.assert_close(context, expected[:, None].expand(-1, 3, -1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_masked_keys_have_no_effect(scorer, form, path):
    attention = build(scorer, **form)
    query, memory = randn(3, 4, 6), randn(3, 5, 6, seed=2)
    mask = Mask(keys=lengths_mask(5, 1, 3, S=5))
    before = path(attention, query, memory, mask)

    masked_changed = torch.where(mask.keys[..., None], memory, randn(3, 5, 6, seed=3) * 100)
    valid_changed = torch.where(mask.keys[..., None], randn(3, 5, 6, seed=3), memory)

    assert torch.equal(path(attention, query, masked_changed, mask), before)
    assert (path(attention, query, valid_changed, mask) != before).flatten(1).any(dim=-1).all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_key_affects_only_queries_that_attend_to_it(scorer, path):
    attention = build(scorer, heads=2)
    query, memory = randn(2, 4, 6), randn(2, 5, 6, seed=2)
    pairs = randn(2, 4, 5, seed=4) > 0
    pairs[..., 0] = True
    before = path(attention, query, memory, Mask(pairs=pairs))

    for s in range(1, 5):
        changed = memory.clone()
        changed[:, s] += 1
        after = path(attention, query, changed, Mask(pairs=pairs))
        assert torch.equal((after != before).any(dim=-1), pairs[..., s])


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_causal_mask_hides_later_keys(scorer, path, offset):
    attention = build(scorer, heads=2)
    query, memory = randn(2, 3, 6), randn(2, 5, 6, seed=2)
    mask = Mask(causal=True, offset=offset)
    before = path(attention, query, memory, mask)

    for s in range(5):
        changed = memory.clone()
        changed[:, s] += 1
        after = path(attention, query, changed, mask)
        attends = [s <= offset + t for t in range(3)]
        assert (after != before).any(dim=-1).tolist() == [attends, attends]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_single_queries_with_an_offset_match_parallel_queries(scorer, path):
    attention = build(scorer, heads=2)
    states = randn(2, 5, 6)
    parallel = path(attention, states, states, Mask(causal=True))

    for t in range(5):
        one = path(attention, states[:, t : t + 1], states, Mask(causal=True, offset=t))
        torch.testing.assert_close(one, parallel[:, t : t + 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_fully_masked_rows_are_zero(scorer, path):
    attention = build(scorer)
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2).requires_grad_()
    keys = lengths_mask(4, 0, S=4)

    context = path(attention, query, memory, Mask(keys=keys))
    context.square().sum().backward()

    assert torch.count_nonzero(context[1]) == 0
    assert torch.count_nonzero(context[0]) == context[0].numel()
    assert memory.grad.isfinite().all()
    assert torch.count_nonzero(memory.grad[1]) == 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_fully_masked_rows_of_projected_heads_are_the_output_bias(scorer, path):
    attention = build(scorer, heads=2)
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)
    pairs = torch.ones(2, 3, 4, dtype=torch.bool)
    pairs[1, 2] = False

    context = path(attention, query, memory, Mask(pairs=pairs))

    torch.testing.assert_close(context[1, 2], attention.out.bias, rtol=0, atol=1e-7)
    assert context.isfinite().all()
