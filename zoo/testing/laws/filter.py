"""Laws of filters."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_close, assert_equal, make_generator, randn


def _example_scores() -> tuple[Tensor, Tensor]:
    """Return logits and log-probabilities, each [B, W, V]."""
    logits = randn(2, 3, 6)
    logits[0, 0, 1] = float("-inf")
    return logits, logits.log_softmax(dim=-1)


def _example_history(length: int = 7) -> Tensor:
    """Return tokens [B, W, T] from a vocabulary of three, so that they repeat."""
    return torch.randint(0, 3, (2, 3, length), generator=make_generator(0))


def never_increases(config: Configuration) -> None:
    """A filter returns no NaN and increases no score, except to 0 that of the only token left."""
    part = config.build()
    for scores, length in itertools.product(_example_scores(), range(1, 8)):
        filtered = part(scores, _example_history(length))
        assert filtered.shape == scores.shape, f"{list(filtered.shape)}, not {list(scores.shape)}"
        assert not filtered.isnan().any(), "a score became NaN"
        certain = (filtered == 0) & ((~filtered.isneginf()).sum(dim=-1, keepdim=True) == 1)
        assert ((filtered <= scores) | certain).all(), "a score increased"


def empty_history(config: Configuration) -> None:
    """Without previous tokens, scores do not change."""
    part = config.build()
    for scores in _example_scores():
        assert_equal(part(scores, _example_history(0)), scores, "a score without previous tokens")


def hypothesis_independence(config: Configuration) -> None:
    """Each hypothesis is filtered by its own tokens only."""
    part, tokens = config.build(), _example_history()
    for scores in _example_scores():
        filtered = part(scores, tokens)
        for b in range(2):
            for w in range(3):
                alone = part(scores[b, w][None, None], tokens[b, w][None, None])[0, 0]
                assert_close(filtered[b, w], alone, "a score of a hypothesis in a batch", 1e-12)


def no_inplace(config: Configuration) -> None:
    """A filter does not change its inputs."""
    part, tokens = config.build(), _example_history()
    for scores in _example_scores():
        before = scores.clone()
        part(scores, tokens)
        assert_equal(scores, before, "an input score")
    assert_equal(tokens, _example_history(), "an input token")


LAWS = (
    Law("never-increases", never_increases),
    Law("empty-history", empty_history),
    Law("hypothesis-independence", hypothesis_independence),
    Law("no-inplace", no_inplace),
)
