"""The laws of alignments, alone and inside an attention."""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from zoo.attention import Attention
from zoo.interfaces import Look
from zoo.registry.blueprint import Blueprint
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.attention import answers_in_turn, obeys_mask
from zoo.testing.laws.tensors import noise, same, untouched
from zoo.testing.parts import TinyScorer
from zoo.testing.subject import Subject


def _open() -> Tensor:
    """A mask that broadcasts to scores [B, H, T, S]."""
    return torch.tensor([[True, True, False, True], [False, True, False, True]])[:, None, None]


def _looks(subject: Subject) -> list[Look]:
    """A first look, and one of three queries that come after two others."""
    query = noise(2, 1, 3, subject.given()["query_dim"], seed=9)
    before = torch.tensor([[0.0, 0.75, 0.0, 0.25], [0.0, 0.5, 0.0, 0.0]]).double()[:, None]
    return [Look(query), Look(query, torch.tensor([2, 2]), before)]


def weights_are_weights(subject: Subject) -> None:
    """Weights are never negative and each row sums to 1, or to at most 1 if the alignment says
    that it is not normalised, at any size of the scores."""
    align = subject.part()
    for scale in (1.0, 1e4):
        scores = noise(2, 1, 3, 4) * scale
        for mask in (None, _open()):
            for look in _looks(subject):
                weights = align(scores, mask, look)
                assert (weights >= 0).all(), f"a weight is negative at scale {scale}"
                sums = weights.sum(dim=-1)
                if align.normalised:
                    same(sums, torch.ones_like(sums), f"row sums at scale {scale}")
                else:
                    assert (sums <= 1 + 1e-9).all(), f"a row sums to {sums.max():.6g}"


def masked_keys(subject: Subject) -> None:
    """A masked key gets exactly 0 and cannot influence the others."""
    align = subject.part()
    for seed, look in product(range(4), _looks(subject)):
        scores = noise(2, 1, 3, 4, seed=seed)
        weights = align(scores, _open(), look)
        assert (weights.masked_select(~_open()) == 0).all(), "a masked key has weight"
        for value in (1e6, -1e6):
            other = scores.masked_fill(~_open(), value)
            under = "a weight, by what stands under the mask,"
            untouched(align(other, _open(), look), weights, under)


def nothing_open(subject: Subject) -> None:
    """A fully masked row gives zeros, never NaN, and its gradient is no NaN either."""
    align = subject.part()
    scores = noise(2, 1, 3, 4).requires_grad_()
    mask = _open() & torch.tensor([True, False])[:, None, None, None]
    for look in _looks(subject):
        weights = align(scores, mask, look)
        assert not weights.isnan().any(), "a fully masked row gives NaN"
        assert (weights[1] == 0).all(), "a fully masked row has weight"
        if weights.requires_grad:
            loss = (weights * noise(2, 1, 3, 4, seed=1)).sum()
            wanted = [scores, *align.parameters()]
            for gradient in torch.autograd.grad(loss, wanted, allow_unused=True):
                if gradient is not None:
                    assert not gradient.isnan().any(), "the gradient of a masked row is NaN"


def told_choices(subject: Subject) -> None:
    """One that draws looks at one key, in training at each as often as it says, and the
    log-probability and entropy it tells are those of its draws."""
    align = subject.part()
    if not align.draws:
        raise NotApplicable("it draws nothing")
    draws = 4000
    scores = noise(1, 1, 1, 4).expand(draws, -1, -1, -1)
    mask, look = _open()[:1], Look(noise(draws, 1, 1, subject.given()["query_dim"], seed=9))
    untouched(align(scores, mask, look), align(scores, mask, look), "what evaluation looks at")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights, choices = align.train().choose(scores, mask, look)
    assert choices.logprob.shape == choices.entropy.shape == (draws, 1, 1), "choices not [B, H, T]"
    where = weights[:, 0, 0]
    assert ((where == 1).sum(dim=-1) == 1).all(), "a draw is no single key"
    assert (where.sum(dim=-1) == 1).all(), "a draw has weight beside its key"
    entropy = 0.0
    for key in range(4):
        drawn = where[:, key] == 1
        if not drawn.any():
            continue
        told = choices.logprob[drawn].exp().unique()
        assert told.numel() == 1, "one key has several probabilities"
        chance = told.item()
        error = (chance * (1 - chance) / draws) ** 0.5
        share = drawn.double().mean().item()
        assert abs(share - chance) < 4 * error, f"drawn {share:.3f} of the time, not {chance:.3f}"
        entropy -= chance * math.log(chance)
    off = (choices.entropy - entropy).abs().max().item()
    assert off < 1e-9, f"the entropy is off by {off:.3g}"


def masked_attention(subject: Subject) -> None:
    """Inside an attention, masked and future keys change nothing."""
    obeys_mask(subject, _attention(subject))


def queries_in_turn(subject: Subject) -> None:
    """Inside an attention, queries one by one get what they get all at once (of a sequential
    alignment the first does), and what is remembered follows its row."""
    answers_in_turn(subject, _attention(subject))


def _attention(subject: Subject) -> Attention:
    blueprint = Blueprint.of(
        Attention, scorer=Blueprint.of(TinyScorer), align=subject.blueprint(), heads=2
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return blueprint.build(query_dim=8, key_dim=8).double().eval()


LAWS = (
    Law("weights-are-weights", weights_are_weights),
    Law("masked-keys", masked_keys),
    Law("nothing-open", nothing_open),
    Law("told-choices", told_choices),
    Law("masked-attention", masked_attention),
    Law("queries-in-turn", queries_in_turn),
)
