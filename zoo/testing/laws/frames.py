"""Laws of frame samplers."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from zoo.interfaces import FrameSampler, GenerationOutput
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, length_mask, randn, with_impossible_tokens

_BLANK, _PAD = 1, 0
_LENGTHS = (5, 2, 4)


def _sampler(config: Configuration) -> FrameSampler:
    sampler = config.build()
    if not isinstance(sampler, FrameSampler):
        raise NotApplicable("it is not a frame sampler")
    return sampler


def _frames(*, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [B, T, V] without probability for padding, and their mask."""
    logits = randn(3, 5, 4, seed=seed)
    logits[..., _PAD] = float("-inf")
    return logits.log_softmax(dim=-1), length_mask(_LENGTHS)


def _decode(sampler: FrameSampler, logprobs: Tensor, mask: Tensor) -> GenerationOutput:
    return sampler.decode_frames(logprobs, mask, blank=_BLANK, pad=_PAD)


def _labels(row: Tensor) -> list[int]:
    """Return the labels before the padding."""
    labels: list[int] = row.tolist()
    return labels[: labels.index(_PAD)] if _PAD in labels else labels


def certain_path(config: Configuration) -> None:
    """A path of probability 1 gives its labels: repeats merged, then blanks removed."""
    sampler = _sampler(config)
    paths = torch.tensor([[2, 2, 1, 2, 3, 3], [1, 1, 1, 1, 1, 1], [3, 2, 3, 1, 1, 3]])
    logprobs = torch.nn.functional.one_hot(paths, 4).double().log()
    decoded = _decode(sampler, logprobs, torch.ones_like(paths, dtype=torch.bool))
    for item, expected in enumerate(([2, 2, 3], [], [3, 2, 3, 3])):
        labels = _labels(decoded.tokens[item, 0])
        assert labels == expected, f"labels are {labels}, not {expected}"
    best = decoded.scores[:, 0].double()
    assert_close(best, torch.zeros_like(best), "the score of a path of probability 1", 1e-6)


def padding_frames(config: Configuration) -> None:
    """Padding frames do not change the labels and scores of an item."""
    sampler = _sampler(config)
    logprobs, mask = _frames()
    together = _decode(sampler, logprobs, mask)
    changed = logprobs.masked_fill(~mask[..., None], -1e3)
    changed[..., 2] = changed[..., 2].masked_fill(~mask, 0.0)
    others = [_decode(sampler, changed, mask)] * len(_LENGTHS)
    alone = [
        _decode(sampler, logprobs[i : i + 1, :length], mask[i : i + 1, :length])
        for i, length in enumerate(_LENGTHS)
    ]
    for item in range(len(_LENGTHS)):
        for row, other in ((item, others[item]), (0, alone[item])):
            actual, expected = other.tokens[row, 0], together.tokens[item, 0]
            assert _labels(actual) == _labels(expected), "the labels depend on padding frames"
            assert_close(
                other.scores[row], together.scores[item], "a score with padding frames", 1e-6
            )


def impossible_labels(config: Configuration) -> None:
    """Further labels with probability 0 do not change labels and scores."""
    sampler = _sampler(config)
    logprobs, mask = _frames()
    extended, token_ids = with_impossible_tokens(logprobs)
    expected, found = (_decode(sampler, x, mask) for x in (logprobs, extended))
    assert_close(found.scores, expected.scores, "a score with impossible labels", 1e-6)
    for rows, expected_rows in zip(found.tokens[:, 0], expected.tokens[:, 0], strict=True):
        labels = [int(token_ids[label]) for label in _labels(expected_rows)]
        assert _labels(rows) == labels, "impossible labels change the labels"


def valid_labels(config: Configuration) -> None:
    """Hypotheses are distinct, without blanks, and with padding only after the last label."""
    sampler = _sampler(config)
    for seed in range(5):
        decoded = _decode(sampler, *_frames(seed=seed))
        for rows, scores in zip(decoded.tokens, decoded.scores.tolist(), strict=True):
            finite = [row for row, score in zip(rows, scores, strict=True) if score > -math.inf]
            hypotheses = [tuple(_labels(row)) for row in finite]
            assert len(set(hypotheses)) == len(hypotheses), "a hypothesis is repeated"
            for row, labels in zip(finite, hypotheses, strict=True):
                assert _BLANK not in labels, "a label is the blank"
                assert not row[len(labels) :].any(), "a label follows padding"


def score_bounds(config: Configuration) -> None:
    """Scores are in descending order and not above the log-probability over all paths."""
    sampler = _sampler(config)
    logprobs, mask = _frames()
    decoded = _decode(sampler, logprobs, mask)
    later, earlier = decoded.scores[:, 1:], decoded.scores[:, :-1]
    assert (later <= earlier).all(), "scores are not in descending order"
    for item, length in enumerate(_LENGTHS):
        sums = _likelihoods(logprobs[item, :length].exp().tolist())
        for row, score in zip(decoded.tokens[item], decoded.scores[item].tolist(), strict=True):
            total = sums.get(tuple(_labels(row)), 0.0)
            assert score == -math.inf or score <= math.log(total) + 1e-5, (
                "a score is above the log-probability of its labels"
            )


def _likelihoods(frames: list[list[float]]) -> dict[tuple[int, ...], float]:
    """Return the probability of every labelling, by enumerating all paths."""
    sums: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(frames[0])), repeat=len(frames)):
        labels = tuple(label for label, _ in itertools.groupby(path) if label != _BLANK)
        p = math.prod(row[label] for row, label in zip(frames, path, strict=True))
        sums[labels] = sums.get(labels, 0.0) + p
    return sums


LAWS = (
    Law("certain-path", certain_path),
    Law("padding-frames", padding_frames),
    Law("impossible-labels", impossible_labels),
    Law("valid-labels", valid_labels),
    Law("score-bounds", score_bounds),
)
