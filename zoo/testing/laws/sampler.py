"""Laws of samplers."""

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
from zoo.testing.laws.contracts import SAMPLER_LAWS
from zoo.testing.laws.frames import LAWS as FRAME_LAWS
from zoo.testing.laws.helpers import (
    assert_close,
    assert_equal,
    make_generator,
    randn,
    random_memory,
    with_impossible_tokens,
)
from zoo.testing.tiny import TinyDecoder, TinyEmbedding, TinySampler

_SAMPLES = 20_000


def _step_sampler(config: Configuration) -> Sampler:
    sampler: Sampler = config.build()
    if isinstance(sampler, FrameSampler):
        raise NotApplicable("it is a frame sampler")
    if sampler.decoding != "step":
        raise NotApplicable(f"decoding is '{sampler.decoding}', which only its models support")
    return sampler


def _example_step(sampler: Sampler, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [B, W, V] and scores so far [B, W]."""
    logprobs = randn(2, sampler.width, 6, seed=seed).log_softmax(dim=-1)
    return logprobs, -randn(2, sampler.width, seed=seed + 1).abs()


def _select(sampler: Sampler, logprobs: Tensor, scores: Tensor, seed: int) -> Selection:
    """Return the selection in the first step of a search with end token 0."""
    B, W, V = logprobs.shape
    task = SearchConfig(B, V, total_length=4, max_length=3, pad=0, eos_ids=torch.tensor([0]))
    tokens = torch.ones(B, W, task.total_length, dtype=torch.long)
    finished = torch.zeros(B, W, dtype=torch.bool)
    num_generated = torch.ones(B, dtype=torch.long)
    search = SearchState(
        task,
        tokens,
        scores,
        finished,
        num_generated,
        cur_len=1,
        sampler_state=sampler.init_state(task),
    )
    return sampler.advance(logprobs, search, make_generator(seed))[0]


def seeded_sampling(config: Configuration) -> None:
    """A seed always gives the same selection."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    for seed in range(20):  # without a seed, samples can agree by chance
        first, second = (_select(sampler, logprobs, scores, seed) for _ in range(2))
        assert_equal(second.tokens, first.tokens, "a token sampled with the same seed")
        assert_equal(second.parents, first.parents, "a parent sampled with the same seed")


def score_accumulation(config: Configuration) -> None:
    """A score is its parent's score plus the log-probability of the token."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    selection = _select(sampler, logprobs, scores, 0)
    assert selection.tokens.shape == scores.shape, "tokens are not [B, W]"
    assert ((selection.parents >= 0) & (selection.parents < sampler.width)).all(), (
        "a parent is not a hypothesis"
    )
    rows = logprobs.gather(1, selection.parents[..., None].expand(-1, -1, 6))
    token = rows.gather(2, selection.tokens[..., None])[..., 0]
    assert_close(selection.scores, scores.gather(1, selection.parents) + token, "a score", 1e-6)


def zero_probability(config: Configuration) -> None:
    """A token with probability 0 is not selected while another token is possible."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    restricted = logprobs.clone()
    restricted[..., :4] = float("-inf")
    for seed in range(20):
        selection = _select(sampler, restricted.log_softmax(dim=-1), scores, seed)
        assert (selection.tokens >= 4).all(), "a token with probability 0 was selected"


def impossible_tokens(config: Configuration) -> None:
    """Further tokens of the vocabulary with probability 0 do not change the selection."""
    sampler = _step_sampler(config)
    logprobs, scores = _example_step(sampler)
    extended, token_ids = with_impossible_tokens(logprobs)
    if type(sampler).distribution is not Sampler.distribution:
        p, extended_p = (sampler.distribution(x) for x in (logprobs, extended))
        assert_close(extended_p[..., token_ids], p, "a probability with impossible tokens", 1e-6)
        return
    expected, found = (_select(sampler, x, scores, 0) for x in (logprobs, extended))
    assert_equal(found.tokens, token_ids[expected.tokens], "a token with impossible tokens")
    assert_equal(found.parents, expected.parents, "a parent with impossible tokens")
    assert_close(found.scores, expected.scores, "a score with impossible tokens", 1e-6)


def matches_distribution(config: Configuration) -> None:
    """Sample frequencies follow `distribution` (chi-square test with a fixed seed)."""
    sampler = _step_sampler(config)
    if sampler.width != 1:
        raise NotApplicable("it keeps several hypotheses, which are not independent samples")
    logprobs = randn(6).log_softmax(dim=-1)
    expected = sampler.distribution(logprobs)
    assert_close(expected.sum(), torch.tensor(1.0).double(), "the sum of the distribution", 1e-6)
    rows = logprobs.expand(_SAMPLES, 1, 6)
    tokens = _select(sampler, rows, torch.zeros(_SAMPLES, 1).double(), 0).tokens[:, 0]
    counts = torch.bincount(tokens, minlength=6).double()
    possible = expected > 0
    assert (counts[~possible] == 0).all(), "a token with probability 0 was sampled"
    expected_counts = expected[possible] * _SAMPLES
    chi_square = ((counts[possible] - expected_counts) ** 2 / expected_counts).sum().item()
    # 20.5 is the 99.9th percentile of chi-square with five degrees of freedom.
    assert chi_square < 20.5, (
        f"samples do not follow the distribution (chi-square {chi_square:.1f})"
    )


def finished_stays_finished(config: Configuration) -> None:
    """In the decoding loop, only padding follows an end token."""
    out = _generate(_step_sampler(config), logit_scale=1.0)
    ended = (out == 2).cumsum(dim=-1) - (out == 2).long()
    assert (out.masked_select(ended > 0) == 0).all(), "a finished hypothesis continued"


def greedy_when_certain(config: Configuration) -> None:
    """If one token has probability 1, every sampler selects it."""
    tokens = _generate(_step_sampler(config), logit_scale=1e6)[:, 0]
    greedy = _generate(TinySampler(), logit_scale=1e6)[:, 0]
    longest = max(tokens.shape[-1], greedy.shape[-1])
    tokens, greedy = (
        torch.nn.functional.pad(x, (0, longest - x.shape[-1])) for x in (tokens, greedy)
    )
    assert_equal(tokens, greedy, "the token of probability 1")


class _ScaledDecoder(TinyDecoder):
    """A decoder that never outputs padding; larger `logit_scale` gives a sharper distribution."""

    logit_scale = 1.0

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, state = super().step(tokens, state)
        logits[..., 0] = float("-inf")
        return logits * self.logit_scale, state


def _generate(sampler: Sampler, *, logit_scale: float) -> Tensor:
    """Return tokens [B, N, T] of the decoding loop; 2 is the end token, 0 padding."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        decoder = _ScaledDecoder(embedding=TinyEmbedding(), summary_dim=4).double()
    decoder.logit_scale = logit_scale
    source = random_memory(6, 4, lengths=(4,) * 8)
    inputs = GenerationInputs(decoder, source, bos=1, eos=2, pad=0)
    request = DecodeRequest(sampler=sampler, max_length=12, generator=make_generator(0))
    return decode(inputs, request).tokens


LAWS = (
    Law("seeded-sampling", seeded_sampling),
    Law("score-accumulation", score_accumulation),
    Law("zero-probability", zero_probability),
    Law("impossible-tokens", impossible_tokens),
    Law("matches-distribution", matches_distribution),
    Law("finished-stays-finished", finished_stays_finished),
    Law("greedy-when-certain", greedy_when_certain),
    *FRAME_LAWS,
    *SAMPLER_LAWS,
)
