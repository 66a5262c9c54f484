import pytest
import torch
from attention_kit import (
    CASES,
    PATHS,
    SCORERS,
    accelerated_path,
    build,
    lengths_mask,
    randn,
    reference_path,
)

from zoo.plugin import Mask

FUSED = [case for case in CASES if case.values[0] in ("dot", "scaled-dot")]
FUSED += [case for case in CASES if case.values[0] == "general" and case.values[1]["heads"] == 1]


@pytest.mark.parametrize(("scorer", "form"), FUSED)
def test_accelerated_path_matches_reference_path(scorer, form):
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
            accelerated_path(attention, query, memory, mask),
            reference_path(attention, query, memory, mask),
            rtol=0,
            atol=1e-6,
        )


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
