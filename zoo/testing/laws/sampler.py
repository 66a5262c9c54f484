"""The laws of samplers."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.generation import decode
from zoo.interfaces import FrameSampler, Sampler, Search, Selection, State, Task
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.frames import LAWS as FRAME_LAWS
from zoo.testing.laws.tensors import memory, noise, same, seeded, untouched
from zoo.testing.parts import TinyDecoder, TinyEmbedding, TinySampler
from zoo.testing.subject import Subject

_DRAWS = 20_000


def _stepping(subject: Subject) -> Sampler:
    sampler: Sampler = subject.part()
    if isinstance(sampler, FrameSampler):
        raise NotApplicable("it reads all frames at once")
    return sampler


def _race(sampler: Sampler, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Log-probabilities [B, W, V] and scores so far [B, W], as the loop offers them."""
    logprobs = noise(2, sampler.width, 6, seed=seed).log_softmax(dim=-1)
    return logprobs, -noise(2, sampler.width, seed=seed + 1).abs()


def _choice(sampler: Sampler, logprobs: Tensor, scores: Tensor, seed: int) -> Selection:
    """What the sampler chooses in the first step of a search that token 0 ends."""
    B, W, V = logprobs.shape
    task = Task(B, V, columns=4, max_length=3, pad=0, ends=torch.tensor([0]))
    said = torch.ones(B, W, task.columns, dtype=torch.long)
    none, first = torch.zeros(B, W, dtype=torch.bool), torch.ones(B, dtype=torch.long)
    search = Search(task, said, scores, none, first, at=1, kept=sampler.begin(task))
    return sampler.advance(logprobs, search, _drawn(seed))[0]


def _drawn(generator_seed: int) -> torch.Generator:
    return seeded(generator_seed)


def seeded_draws(subject: Subject) -> None:
    """One seed always makes the same choice."""
    sampler = _stepping(subject)
    logprobs, scores = _race(sampler)
    for seed in range(20):  # draws that follow no seed agree by chance now and then
        first, second = (_choice(sampler, logprobs, scores, seed) for _ in range(2))
        untouched(second.tokens, first.tokens, "a token drawn with the same seed")
        untouched(second.parents, first.parents, "a parent drawn with the same seed")


def kept_accounts(subject: Subject) -> None:
    """A score is its parent's score plus the log-probability of the token."""
    sampler = _stepping(subject)
    logprobs, scores = _race(sampler)
    chosen = _choice(sampler, logprobs, scores, 0)
    assert chosen.tokens.shape == scores.shape, "tokens are not [B, W]"
    assert ((chosen.parents >= 0) & (chosen.parents < sampler.width)).all(), "no such parent"
    rows = logprobs.gather(1, chosen.parents[..., None].expand(-1, -1, 6))
    token = rows.gather(2, chosen.tokens[..., None])[..., 0]
    same(chosen.scores, scores.gather(1, chosen.parents) + token, "a score", 1e-6)


def never_impossible(subject: Subject) -> None:
    """A token of probability 0 is never chosen while there is another."""
    sampler = _stepping(subject)
    logprobs, scores = _race(sampler)
    barred = logprobs.clone()
    barred[..., :4] = float("-inf")
    for seed in range(20):
        chosen = _choice(sampler, barred.log_softmax(dim=-1), scores, seed)
        assert (chosen.tokens >= 4).all(), "an impossible token was chosen"


def stated_distribution(subject: Subject) -> None:
    """Draws follow the distribution that the sampler states (chi-square at a fixed seed)."""
    sampler = _stepping(subject)
    if sampler.width != 1:
        raise NotApplicable("it keeps several hypotheses, which are not independent draws")
    logprobs = noise(6).log_softmax(dim=-1)
    stated = sampler.distribution(logprobs)
    same(stated.sum(), torch.tensor(1.0).double(), "the stated distribution's sum", 1e-6)
    many = logprobs.expand(_DRAWS, 1, 6)
    tokens = _choice(sampler, many, torch.zeros(_DRAWS, 1).double(), 0).tokens[:, 0]
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
    out = _said(_stepping(subject), sharpness=1.0)
    ended = (out == 2).cumsum(dim=-1) - (out == 2).long()
    assert (out.masked_select(ended > 0) == 0).all(), "a finished hypothesis went on"


def certainty(subject: Subject) -> None:
    """Where one token has all the probability, it is taken: every sampler is greedy then."""
    said = _said(_stepping(subject), sharpness=1e6)[:, 0]
    greedy = _said(TinySampler(), sharpness=1e6)[:, 0]
    longest = max(said.shape[-1], greedy.shape[-1])
    said, greedy = (torch.nn.functional.pad(x, (0, longest - x.shape[-1])) for x in (said, greedy))
    untouched(said, greedy, "what is certain")


class _Sharp(TinyDecoder):
    """Never pads, and is as sure of itself as it is told."""

    sharpness = 1.0

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, state = super().step(tokens, state)
        logits[..., 0] = float("-inf")
        return logits * self.sharpness, state


def _said(sampler: Sampler, *, sharpness: float) -> Tensor:
    """tokens [B, N, T] from the decoding loop; 2 ends, 0 pads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = _Sharp(embedding=TinyEmbedding(), summary_dim=4).double()
    decoder.sharpness = sharpness
    source = memory(6, 4, lengths=(4,) * 8)
    return decode(
        decoder, source, sampler, bos=1, eos=2, pad=0, max_length=12, generator=_drawn(0)
    ).tokens


LAWS = (
    Law("seeded-draws", seeded_draws),
    Law("kept-accounts", kept_accounts),
    Law("never-impossible", never_impossible),
    Law("stated-distribution", stated_distribution),
    Law("finished-stays-finished", finished_stays_finished),
    Law("certainty", certainty),
    *FRAME_LAWS,
)
