"""The laws of samplers."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.decoding import decode
from zoo.interfaces import Sampler
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.tensors import memory, noise, same, untouched
from zoo.testing.parts import TinyDecoder, TinyEmbedding
from zoo.testing.subject import Subject

_DRAWS = 20_000


def _race(sampler: Sampler, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Log-probabilities [B, W, V] and scores so far [B, W], as the loop offers them."""
    logprobs = noise(2, sampler.width, 6, seed=seed).log_softmax(dim=-1)
    return logprobs, -noise(2, sampler.width, seed=seed + 1).abs()


def _drawn(generator_seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(generator_seed)


def seeded_draws(subject: Subject) -> None:
    """One seed always makes the same choice."""
    sampler = subject.part()
    logprobs, scores = _race(sampler)
    first, second = (sampler.select(logprobs, scores, _drawn(7)) for _ in range(2))
    untouched(second.tokens, first.tokens, "a token drawn with the same seed")
    untouched(second.parents, first.parents, "a parent drawn with the same seed")


def kept_accounts(subject: Subject) -> None:
    """A score is its parent's score plus the log-probability of the token."""
    sampler = subject.part()
    logprobs, scores = _race(sampler)
    chosen = sampler.select(logprobs, scores, _drawn(0))
    assert chosen.tokens.shape == scores.shape, "tokens are not [B, W]"
    assert ((chosen.parents >= 0) & (chosen.parents < sampler.width)).all(), "no such parent"
    rows = logprobs.gather(1, chosen.parents[..., None].expand(-1, -1, 6))
    token = rows.gather(2, chosen.tokens[..., None])[..., 0]
    same(chosen.scores, scores.gather(1, chosen.parents) + token, "a score", 1e-6)


def never_impossible(subject: Subject) -> None:
    """A token of probability 0 is never chosen while there is another."""
    sampler = subject.part()
    logprobs, scores = _race(sampler)
    barred = logprobs.clone()
    barred[..., :4] = float("-inf")
    for seed in range(20):
        chosen = sampler.select(barred.log_softmax(dim=-1), scores, _drawn(seed))
        assert (chosen.tokens >= 4).all(), "an impossible token was chosen"


def stated_distribution(subject: Subject) -> None:
    """Draws follow the distribution that the sampler states (chi-square at a fixed seed)."""
    sampler = subject.part()
    if sampler.width != 1:
        raise NotApplicable("it keeps several hypotheses, which are not independent draws")
    logprobs = noise(6).log_softmax(dim=-1)
    stated = sampler.distribution(logprobs)
    same(stated.sum(), torch.tensor(1.0).double(), "the stated distribution's sum", 1e-6)
    many = logprobs.expand(_DRAWS, 1, 6)
    tokens = sampler.select(many, torch.zeros(_DRAWS, 1).double(), _drawn(0)).tokens[:, 0]
    seen = torch.bincount(tokens, minlength=6).double()
    possible = stated > 0
    assert (seen[~possible] == 0).all(), "a token outside the stated distribution was drawn"
    expected = stated[possible] * _DRAWS
    distance = ((seen[possible] - expected) ** 2 / expected).sum().item()
    # 20.5 is the 99.9th percentile of chi-square with five degrees of freedom.
    assert distance < 20.5, (
        f"draws do not follow the stated distribution (chi-square {distance:.1f})"
    )


def finished_stays_finished(subject: Subject) -> None:
    """In the decoding loop, nothing but padding follows an end token."""
    sampler = subject.part()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4).double()
    source = memory(6, 4, lengths=(4,) * 8)
    out = decode(
        decoder, source, sampler, bos=1, eos=2, pad=0, max_length=12, generator=_drawn(0)
    ).tokens
    ended = (out == 2).cumsum(dim=-1) - (out == 2).long()
    assert (out.masked_select(ended > 0) == 0).all(), "a finished hypothesis went on"


LAWS = (
    Law("seeded-draws", seeded_draws),
    Law("kept-accounts", kept_accounts),
    Law("never-impossible", never_impossible),
    Law("stated-distribution", stated_distribution),
    Law("finished-stays-finished", finished_stays_finished),
)
