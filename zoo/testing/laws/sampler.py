"""The laws of samplers."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.generation import DecodeRequest, decode
from zoo.interfaces import (
    FrameSampler,
    GenerationInputs,
    Sampler,
    SearchConfig,
    SearchState,
    Selection,
    State,
)
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.frames import LAWS as FRAME_LAWS
from zoo.testing.laws.helpers import (
    assert_close,
    assert_equal,
    make_generator,
    randn,
    random_memory,
)
from zoo.testing.tiny import TinyDecoder, TinyEmbedding, TinySampler

_DRAWS = 20_000


def _step_sampler(config: Configuration) -> Sampler:
    sampler: Sampler = config.build()
    if isinstance(sampler, FrameSampler):
        raise NotApplicable("it reads all frames at once")
    return sampler


def _example_step(sampler: Sampler, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Log-probabilities [B, W, V] and scores so far [B, W], as the loop offers them."""
    logprobs = randn(2, sampler.width, 6, seed=seed).log_softmax(dim=-1)
    return logprobs, -randn(2, sampler.width, seed=seed + 1).abs()


def _select(sampler: Sampler, logprobs: Tensor, scores: Tensor, seed: int) -> Selection:
    """What the sampler chooses in the first step of a search that token 0 ends."""
    B, W, V = logprobs.shape
    task = SearchConfig(B, V, total_length=4, max_length=3, pad=0, eos_ids=torch.tensor([0]))
    said = torch.ones(B, W, task.total_length, dtype=torch.long)
    none, first = torch.zeros(B, W, dtype=torch.bool), torch.ones(B, dtype=torch.long)
    search = SearchState(
        task, said, scores, none, first, cur_len=1, sampler_state=sampler.init_state(task)
    )
    return sampler.advance(logprobs, search, _generator(seed))[0]


def _generator(generator_seed: int) -> torch.Generator:
    return make_generator(generator_seed)


def seeded_sampling(config: Configuration) -> None:
    """One seed always makes the same choice."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    for seed in range(20):  # draws that follow no seed agree by chance now and then
        first, second = (_select(sampler, logprobs, scores, seed) for _ in range(2))
        assert_equal(second.tokens, first.tokens, "a token drawn with the same seed")
        assert_equal(second.parents, first.parents, "a parent drawn with the same seed")


def score_accumulation(config: Configuration) -> None:
    """A score is its parent's score plus the log-probability of the token."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    chosen = _select(sampler, logprobs, scores, 0)
    assert chosen.tokens.shape == scores.shape, "tokens are not [B, W]"
    assert ((chosen.parents >= 0) & (chosen.parents < sampler.width)).all(), "no such parent"
    rows = logprobs.gather(1, chosen.parents[..., None].expand(-1, -1, 6))
    token = rows.gather(2, chosen.tokens[..., None])[..., 0]
    assert_close(chosen.scores, scores.gather(1, chosen.parents) + token, "a score", 1e-6)


def zero_probability(config: Configuration) -> None:
    """A token of probability 0 is never chosen while there is another."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    barred = logprobs.clone()
    barred[..., :4] = float("-inf")
    for seed in range(20):
        chosen = _select(sampler, barred.log_softmax(dim=-1), scores, seed)
        assert (chosen.tokens >= 4).all(), "an impossible token was chosen"


def matches_distribution(config: Configuration) -> None:
    """Draws follow the distribution that the sampler states (chi-square at a fixed seed)."""
    sampler = _step_sampler(config)
    if sampler.width != 1:
        raise NotApplicable("it keeps several hypotheses, which are not independent draws")
    logprobs = randn(6).log_softmax(dim=-1)
    stated = sampler.distribution(logprobs)
    assert_close(stated.sum(), torch.tensor(1.0).double(), "the stated distribution's sum", 1e-6)
    many = logprobs.expand(_DRAWS, 1, 6)
    tokens = _select(sampler, many, torch.zeros(_DRAWS, 1).double(), 0).tokens[:, 0]
    seen = torch.bincount(tokens, minlength=6).double()
    possible = stated > 0
    assert (seen[~possible] == 0).all(), "a token outside the stated distribution was drawn"
    expected = stated[possible] * _DRAWS
    distance = ((seen[possible] - expected) ** 2 / expected).sum().item()
    # 20.5 is the 99.9th percentile of chi-square with five degrees of freedom.
    assert distance < 20.5, (
        f"draws do not follow the stated distribution (chi-square {distance:.1f})"
    )


def finished_stays_finished(config: Configuration) -> None:
    """In the decoding loop, nothing but padding follows an end token."""
    out = _generate(_step_sampler(config), logit_scale=1.0)
    ended = (out == 2).cumsum(dim=-1) - (out == 2).long()
    assert (out.masked_select(ended > 0) == 0).all(), "a finished hypothesis went on"


def greedy_when_certain(config: Configuration) -> None:
    """Where one token has all the probability, it is taken: every sampler is greedy then."""
    said = _generate(_step_sampler(config), logit_scale=1e6)[:, 0]
    greedy = _generate(TinySampler(), logit_scale=1e6)[:, 0]
    longest = max(said.shape[-1], greedy.shape[-1])
    said, greedy = (torch.nn.functional.pad(x, (0, longest - x.shape[-1])) for x in (said, greedy))
    assert_equal(said, greedy, "what is certain")


class _ScaledDecoder(TinyDecoder):
    """Never pads, and is as sure of itself as it is told."""

    logit_scale = 1.0

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, state = super().step(tokens, state)
        logits[..., 0] = float("-inf")
        return logits * self.logit_scale, state


def _generate(sampler: Sampler, *, logit_scale: float) -> Tensor:
    """tokens [B, N, T] from the decoding loop; 2 ends, 0 pads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = _ScaledDecoder(embedding=TinyEmbedding(), summary_dim=4).double()
    decoder.logit_scale = logit_scale
    source = random_memory(6, 4, lengths=(4,) * 8)
    inputs = GenerationInputs(decoder, source, bos=1, eos=2, pad=0)
    request = DecodeRequest(sampler=sampler, max_length=12, generator=_generator(0))
    return decode(inputs, request).tokens


LAWS = (
    Law("seeded-sampling", seeded_sampling),
    Law("score-accumulation", score_accumulation),
    Law("zero-probability", zero_probability),
    Law("matches-distribution", matches_distribution),
    Law("finished-stays-finished", finished_stays_finished),
    Law("greedy-when-certain", greedy_when_certain),
    *FRAME_LAWS,
)
