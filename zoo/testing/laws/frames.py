"""The laws of samplers that read all frames at once."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from zoo.interfaces import FrameSampler, GenerationOutput
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, length_mask, randn

_BLANK, _PAD = 1, 0
_LENGTHS = (5, 2, 4)


def _sampler(config: Configuration) -> FrameSampler:
    sampler = config.build()
    if not isinstance(sampler, FrameSampler):
        raise NotApplicable("it chooses token by token")
    return sampler


def _build_stack(*, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Log-probabilities [B, T, V] in which the padding symbol is impossible, and their mask."""
    logits = randn(3, 5, 4, seed=seed)
    logits[..., _PAD] = float("-inf")
    return logits.log_softmax(dim=-1), length_mask(_LENGTHS)


def _decode(sampler: FrameSampler, logprobs: Tensor, mask: Tensor) -> GenerationOutput:
    return sampler.decode_frames(logprobs, mask, blank=_BLANK, pad=_PAD)


def _labels(row: Tensor) -> list[int]:
    """Up to the padding."""
    said: list[int] = row.tolist()
    return said[: said.index(_PAD)] if _PAD in said else said


def certain_path(config: Configuration) -> None:
    """A path that has all the probability is read off: repeats merged, then blanks dropped."""
    sampler = _sampler(config)
    paths = torch.tensor([[2, 2, 1, 2, 3, 3], [1, 1, 1, 1, 1, 1], [3, 2, 3, 1, 1, 3]])
    certain = torch.nn.functional.one_hot(paths, 4).double().log()
    decoded = _decode(sampler, certain, torch.ones_like(paths, dtype=torch.bool))
    for item, expected in enumerate(([2, 2, 3], [], [3, 2, 3, 3])):
        read = _labels(decoded.tokens[item, 0])
        assert read == expected, f"read {read} off a path of {expected}"
    best = decoded.scores[:, 0].double()
    assert_close(best, torch.zeros_like(best), "the score of what is certain", 1e-6)


def padding_frames(config: Configuration) -> None:
    """Padding frames change nothing: not by what they hold, and a batch equals its items alone."""
    sampler = _sampler(config)
    logprobs, mask = _build_stack()
    together = _decode(sampler, logprobs, mask)
    louder = logprobs.masked_fill(~mask[..., None], -1e3)
    louder[..., 2] = louder[..., 2].masked_fill(~mask, 0.0)
    others = [_decode(sampler, louder, mask)] * len(_LENGTHS)
    alone = [
        _decode(sampler, logprobs[i : i + 1, :length], mask[i : i + 1, :length])
        for i, length in enumerate(_LENGTHS)
    ]
    for item in range(len(_LENGTHS)):
        for row, other in ((item, others[item]), (0, alone[item])):
            read, expected = other.tokens[row, 0], together.tokens[item, 0]
            assert _labels(read) == _labels(expected), "the labels changed with the padding"
            assert_close(
                other.scores[row], together.scores[item], "a score, with the padding", 1e-6
            )


def valid_labels(config: Configuration) -> None:
    """Hypotheses are distinct and hold labels: no blank, and padding only after the last."""
    sampler = _sampler(config)
    for seed in range(5):
        decoded = _decode(sampler, *_build_stack(seed=seed))
        for rows, scores in zip(decoded.tokens, decoded.scores.tolist(), strict=True):
            real = [row for row, score in zip(rows, scores, strict=True) if score > -math.inf]
            said = [tuple(_labels(row)) for row in real]
            assert len(set(said)) == len(said), "a hypothesis is there twice"
            for row, labels in zip(real, said, strict=True):
                assert _BLANK not in labels, "a blank among the labels"
                assert not row[len(labels) :].any(), "something follows the padding"


def score_bounds(config: Configuration) -> None:
    """Scores come best first, none above the log-probability of its labels over all paths."""
    sampler = _sampler(config)
    logprobs, mask = _build_stack()
    decoded = _decode(sampler, logprobs, mask)
    later, earlier = decoded.scores[:, 1:], decoded.scores[:, :-1]
    assert (later <= earlier).all(), "scores are not best first"
    for item, length in enumerate(_LENGTHS):
        sums = _likelihoods(logprobs[item, :length].exp().tolist())
        for row, score in zip(decoded.tokens[item], decoded.scores[item].tolist(), strict=True):
            limit = sums.get(tuple(_labels(row)), 0.0)
            assert score == -math.inf or score <= math.log(limit) + 1e-5, "a score is too high"


def _likelihoods(frames: list[list[float]]) -> dict[tuple[int, ...], float]:
    """The probability of every labelling, by trying every path."""
    sums: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(frames[0])), repeat=len(frames)):
        labels = tuple(symbol for symbol, _ in itertools.groupby(path) if symbol != _BLANK)
        p = math.prod(row[symbol] for row, symbol in zip(frames, path, strict=True))
        sums[labels] = sums.get(labels, 0.0) + p
    return sums


LAWS = (
    Law("certain-path", certain_path),
    Law("padding-frames", padding_frames),
    Law("valid-labels", valid_labels),
    Law("score-bounds", score_bounds),
)
