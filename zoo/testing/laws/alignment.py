"""Laws of alignments, alone and inside an attention."""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from zoo.attention import Attention
from zoo.interfaces import AlignmentContext
from zoo.registry.blueprint import Blueprint
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.attention import check_mask, check_stepwise
from zoo.testing.laws.helpers import assert_close, assert_equal, randn
from zoo.testing.tiny import TinyScorer

_KEYS = 4001
"""Number of keys of which bfloat16, with 8 bits, cannot represent all positions."""


def _mask() -> Tensor:
    """Return a mask that broadcasts to scores [B, H, T, S]."""
    return torch.tensor([[True, True, False, True], [False, True, False, True]])[:, None, None]


def _contexts(config: Configuration) -> list[AlignmentContext]:
    """Return the context of a first query, and of three queries after two others."""
    query = randn(2, 1, 3, config.parent_values()["query_dim"], seed=9)
    previous_weights = torch.tensor([[0.0, 0.75, 0.0, 0.25], [0.0, 0.5, 0.0, 0.0]]).double()[
        :, None
    ]
    return [
        AlignmentContext(query),
        AlignmentContext(query, torch.tensor([2, 2]), previous_weights),
    ]


def valid_weights(config: Configuration) -> None:
    """Weights are not negative and each row sums to 1, to at most 1 if the alignment is not
    normalised, or to any value if it is not bounded, for small and large scores."""
    align = config.build()
    for scale in (1.0, 1e4):
        scores = randn(2, 1, 3, 4) * scale
        for mask in (None, _mask()):
            for context in _contexts(config):
                weights = align(scores, mask, context)
                assert (weights >= 0).all(), f"a weight is negative at scale {scale}"
                sums = weights.sum(dim=-1)
                if align.normalised:
                    assert_close(sums, torch.ones_like(sums), f"row sums at scale {scale}")
                elif align.bounded:
                    assert (sums <= 1 + 1e-9).all(), f"a row sums to {sums.max():.6g}"


def exact_positions(config: Configuration) -> None:
    """Autocast to bfloat16 does not change the weights of thousands of keys: positions are
    computed in float32 or higher."""
    align = config.build(dtype=torch.float32)
    scores = randn(2, 1, 3, _KEYS).float()
    mask = torch.arange(_KEYS) < torch.tensor([_KEYS, _KEYS - 100])[:, None, None, None]
    query = randn(2, 1, 3, config.parent_values()["query_dim"], seed=9).float()
    context = AlignmentContext(query, torch.tensor([_KEYS - 10, _KEYS // 2]), _one_hot(2))
    expected = align(scores, mask, context)
    with torch.autocast(scores.device.type, torch.bfloat16):
        weights = align(scores, mask, context)
    tolerance = 1e-3 * max(1.0, expected.abs().max().item())
    assert_close(weights.float(), expected, "weights under autocast", tolerance)


def _one_hot(items: int) -> Tensor:
    """Return previous weights [B, 1, S] at a key in the middle."""
    key = torch.full((items, 1), _KEYS // 2)
    return torch.nn.functional.one_hot(key, _KEYS).float()


def masked_keys(config: Configuration) -> None:
    """A masked key has weight exactly 0, and its score does not change other weights."""
    align = config.build()
    for seed, context in product(range(4), _contexts(config)):
        scores = randn(2, 1, 3, 4, seed=seed)
        weights = align(scores, _mask(), context)
        assert (weights.masked_select(~_mask()) == 0).all(), "the weight of a masked key is not 0"
        for value in (1e6, -1e6, math.inf, -math.inf, math.nan):
            other = scores.masked_fill(~_mask(), value)
            what = f"a weight, with {value} at the masked keys,"
            assert_equal(align(other, _mask(), context), weights, what)


def fully_masked_rows(config: Configuration) -> None:
    """A fully masked row gives zeros, and neither its weights nor its gradient are NaN."""
    align = config.build()
    scores = randn(2, 1, 3, 4).requires_grad_()
    mask = _mask() & torch.tensor([True, False])[:, None, None, None]
    for context in _contexts(config):
        weights = align(scores, mask, context)
        assert not weights.isnan().any(), "a fully masked row gives NaN"
        assert (weights[1] == 0).all(), "a weight of a fully masked row is not 0"
        if weights.requires_grad:
            loss = (weights * randn(2, 1, 3, 4, seed=1)).sum()
            inputs = [scores, *align.parameters()]
            for gradient in torch.autograd.grad(loss, inputs, allow_unused=True):
                if gradient is not None:
                    assert not gradient.isnan().any(), "the gradient of a masked row is NaN"


def sample_statistics(config: Configuration) -> None:
    """A stochastic alignment selects one key; in training, frequencies, log-probabilities and
    entropies are those of its distribution. A row can be the distribution instead of a sample; its
    log-probability is then 0."""
    align = config.build()
    if not align.is_stochastic:
        raise NotApplicable("it is not stochastic")
    count = 4000
    scores = randn(1, 1, 1, 4).expand(count, -1, -1, -1)
    mask, context = (
        _mask()[:1],
        AlignmentContext(randn(count, 1, 1, config.parent_values()["query_dim"], seed=9)),
    )
    assert_equal(
        align(scores, mask, context), align(scores, mask, context), "the weights in evaluation mode"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights, samples = align.train()(scores, mask, context, return_samples=True)
    assert samples.logprob.shape == samples.entropy.shape == (count, 1, 1), (
        "samples are not [B, H, T]"
    )
    is_sample = (weights[:, 0, 0] == 1).sum(dim=-1) == 1
    selected, expected = weights[is_sample, 0, 0], weights[~is_sample, 0, 0]
    assert is_sample.any(), "no row has exactly one weight of 1"
    assert (samples.logprob[~is_sample] == 0).all(), (
        "a sampled row does not have exactly one weight of 1"
    )
    assert (selected.sum(dim=-1) == 1).all(), "a sample has weight on other keys"
    logprob, count = samples.logprob[is_sample], len(selected)
    entropy = 0.0
    for key in range(4):
        sampled = selected[:, key] == 1
        if not sampled.any():
            continue
        probabilities = logprob[sampled].exp().unique()
        assert probabilities.numel() == 1, "one key has several probabilities"
        probability = probabilities.item()
        error = (probability * (1 - probability) / count) ** 0.5
        frequency = sampled.double().mean().item()
        assert abs(frequency - probability) <= 4 * error, (
            f"key {key} is sampled with frequency {frequency:.3f}, expected {probability:.3f}"
        )
        assert (expected[:, key] - probability).abs().lt(1e-9).all(), (
            f"the weight of key {key} in a row that is not a sample is not its probability"
        )
        entropy -= probability * math.log(probability)
    difference = (samples.entropy - entropy).abs().max().item()
    assert difference < 1e-9, f"the entropy differs by {difference:.3g}"


def masked_attention(config: Configuration) -> None:
    """Inside an attention, masked and future keys have no effect."""
    check_mask(config, _attention(config))


def stepwise_queries(config: Configuration) -> None:
    """Inside an attention, processing queries one at a time gives the same context as in parallel
    (sequential alignments: for the first query only), and the state can be reordered."""
    check_stepwise(config, _attention(config))


def _attention(config: Configuration) -> Attention:
    blueprint = Blueprint.of(
        Attention, scorer=Blueprint.of(TinyScorer), align=config.blueprint(), heads=2
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return blueprint.build(query_dim=8, key_dim=8).double().eval()


LAWS = (
    Law("valid-weights", valid_weights),
    Law("exact-positions", exact_positions),
    Law("masked-keys", masked_keys),
    Law("fully-masked-rows", fully_masked_rows),
    Law("sample-statistics", sample_statistics),
    Law("masked-attention", masked_attention),
    Law("stepwise-queries", stepwise_queries),
)
