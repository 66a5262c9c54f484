"""The laws of alignments, alone and inside an attention."""

from __future__ import annotations

import torch

from zoo.attention import Attention
from zoo.blueprint import Blueprint
from zoo.testing.law import Law
from zoo.testing.laws.attention import obeys_mask
from zoo.testing.laws.tensors import noise, same, untouched
from zoo.testing.parts import TinyScorer
from zoo.testing.subject import Subject

_OPEN = torch.tensor([[True, True, False, True], [False, True, False, True]])[:, None]  # [B, 1, S]


def weights_are_weights(subject: Subject) -> None:
    """Weights are never negative and each row sums to 1, at any size of the scores."""
    align = subject.part()
    for scale in (1.0, 1e4):
        scores = noise(2, 3, 4) * scale
        for mask in (None, _OPEN):
            weights = align(scores, mask)
            assert (weights >= 0).all(), f"a weight is negative at scale {scale}"
            same(weights.sum(dim=-1), torch.ones(2, 3).double(), f"row sums at scale {scale}")


def masked_keys(subject: Subject) -> None:
    """A masked key gets exactly 0 and cannot influence the others."""
    align = subject.part()
    scores = noise(2, 3, 4)
    weights = align(scores, _OPEN)
    assert (weights.masked_select(~_OPEN) == 0).all(), "a masked key has weight"
    for value in (1e6, -1e6):
        other = scores.masked_fill(~_OPEN, value)
        untouched(align(other, _OPEN), weights, "a weight, by what stands under the mask,")


def nothing_open(subject: Subject) -> None:
    """A fully masked row gives zeros, never NaN, and its gradient is no NaN either."""
    align = subject.part()
    scores = noise(2, 3, 4).requires_grad_()
    mask = _OPEN & torch.tensor([True, False])[:, None, None]
    weights = align(scores, mask)
    assert not weights.isnan().any(), "a fully masked row gives NaN"
    assert (weights[1] == 0).all(), "a fully masked row has weight"
    if weights.requires_grad:
        (gradient,) = torch.autograd.grad((weights * noise(2, 3, 4, seed=1)).sum(), scores)
        assert not gradient.isnan().any(), "the gradient of a fully masked row is NaN"


def masked_attention(subject: Subject) -> None:
    """Inside an attention, masked and future keys change nothing."""
    blueprint = Blueprint.of(
        Attention, scorer=Blueprint.of(TinyScorer), align=subject.blueprint(), heads=2
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        obeys_mask(subject, blueprint.build(query_dim=8, key_dim=8).double().eval())


LAWS = (
    Law("weights-are-weights", weights_are_weights),
    Law("masked-keys", masked_keys),
    Law("nothing-open", nothing_open),
    Law("masked-attention", masked_attention),
)
