"""Any scorer x any alignment x heads x merge, all that is registered: masks hold, steps agree."""

import itertools

import pytest
import torch

from zoo.plugin import Attention, Mask
from zoo.registry.component_registry import default_registry
from zoo.testing.laws.attention import answers_in_turn, in_turn, obeys_mask
from zoo.testing.laws.tensors import noise, ragged
from zoo.testing.subject import subjects
from zoo_alignment.hard import Hard


def plainest(kind):
    """The plainest configuration of each registered part of a kind."""
    entries = (e for e in default_registry().components() if e.kind == kind)
    return {entry.name: next(subjects(entry.cls)) for entry in entries}


SCORERS, ALIGNMENTS = plainest("scorer"), plainest("alignment")
CASES = list(itertools.product(SCORERS, ALIGNMENTS, [1, 2], ["concat", "mean"]))


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
def test_it_obeys_its_mask_and_answers_in_turn(scorer, align, heads, merge):
    attention = build(scorer, align, heads, merge)
    obeys_mask(SCORERS[scorer], attention)
    answers_in_turn(SCORERS[scorer], attention)


@pytest.mark.parametrize(("scorer", "align", "heads", "merge"), CASES)
def test_every_weight_learns_unless_looks_are_drawn(scorer, align, heads, merge):
    attention = build(scorer, align, heads, merge).train()
    if attention.align.draws:
        attention.align = Hard(straight_through=True)
    query, memory = noise(3, 4, 8, seed=1).requires_grad_(), noise(3, 5, 8, seed=2)
    context = in_turn(attention, query, memory, Mask(keys=ragged([5, 2, 4])))
    (context * noise(*context.shape, seed=3)).sum().backward()

    assert query.grad.abs().sum() > 0
    dead = [n for n, p in attention.named_parameters() if not p.grad.abs().sum() > 0]
    # The softmax of scores ignores what is the same for all keys.
    assert not [name for name in dead if not name.endswith("key.bias")]
