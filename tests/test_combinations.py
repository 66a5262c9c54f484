"""Every scorer with every alignment, with one and several heads: masks, steps and gradients."""

import itertools

import pytest
import torch

from zoo.plugin import Attention, Mask
from zoo.registry.component_registry import default_registry
from zoo.testing.configuration import configurations
from zoo.testing.laws.attention import attend_stepwise, check_mask, check_stepwise
from zoo.testing.laws.helpers import length_mask, randn
from zoo_alignment.hard import Hard


def smallest(kind):
    """Return the smallest configuration of each registered component of a kind."""
    entries = (e for e in default_registry().components() if e.kind == kind)
    return {entry.name: next(configurations(entry.cls)) for entry in entries}


SCORERS, ALIGNMENTS = smallest("scorer"), smallest("alignment")
FORMS = [(1, "concat"), (2, "concat"), (2, "mean")]
CASES = [(*parts, *form) for *parts, form in itertools.product(SCORERS, ALIGNMENTS, FORMS)]


def build(scorer, align, heads, merge):
    torch.manual_seed(0)
    attention = Attention(
        query_dim=8,
        key_dim=8,
        scorer=SCORERS[scorer].blueprint(),
        align=ALIGNMENTS[align].blueprint(),
        heads=heads,
        merge=merge,
    )
    return attention.double().eval()


@pytest.mark.parametrize(("scorer", "align", "heads", "merge"), CASES)
def test_masked_keys_have_no_effect_and_steps_equal_parallel_queries(scorer, align, heads, merge):
    attention = build(scorer, align, heads, merge)
    check_mask(SCORERS[scorer], attention)
    check_stepwise(SCORERS[scorer], attention)


@pytest.mark.parametrize(("scorer", "align", "heads", "merge"), CASES)
def test_every_parameter_has_a_gradient(scorer, align, heads, merge):
    attention = build(scorer, align, heads, merge).train()
    if attention.align.is_stochastic:
        attention.align = Hard(straight_through=True)
    query, memory = randn(3, 4, 8, seed=1).requires_grad_(), randn(3, 5, 8, seed=2)
    context = attend_stepwise(attention, query, memory, Mask(keys=length_mask([5, 2, 4])))
    (context * randn(*context.shape, seed=3)).sum().backward()

    assert query.grad.abs().sum() > 0
    missing = [n for n, p in attention.named_parameters() if not p.grad.abs().sum() > 0]
    # A bias that adds the same to all scores has no effect on their softmax.
    assert not [name for name in missing if not name.endswith("key.bias")]
