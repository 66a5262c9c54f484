"""The laws of filters."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import assert_close, assert_equal, make_generator, randn


def _example_scores() -> tuple[Tensor, Tensor]:
    """Logits, then log-probabilities, as the loop offers them: each [B, W, V]."""
    logits = randn(2, 3, 6)
    logits[0, 0, 1] = float("-inf")
    return logits, logits.log_softmax(dim=-1)


def _example_history(length: int = 7) -> Tensor:
    """Few symbols, so that they repeat: [B, W, T]."""
    return torch.randint(0, 3, (2, 3, length), generator=make_generator(0))


def never_increases(config: Configuration) -> None:
    """A filter lowers scores or leaves them; none rises and none becomes NaN."""
    part = config.build()
    for offer in _example_scores():
        left = part(offer, _example_history())
        assert left.shape == offer.shape, f"{list(left.shape)}, not {list(offer.shape)}"
        assert not left.isnan().any(), "a score became NaN"
        assert (left <= offer).all(), "a token became likelier"


def empty_history(config: Configuration) -> None:
    """Where nothing was said before, nothing changes."""
    part = config.build()
    for offer in _example_scores():
        assert_equal(part(offer, _example_history(0)), offer, "a score with no past")


def hypothesis_independence(config: Configuration) -> None:
    """Each hypothesis is filtered by its own past alone."""
    part, past = config.build(), _example_history()
    for offer in _example_scores():
        left = part(offer, past)
        for b in range(2):
            for w in range(3):
                alone = part(offer[b, w][None, None], past[b, w][None, None])[0, 0]
                assert_close(left[b, w], alone, "a score beside other hypotheses", 1e-12)


def no_inplace(config: Configuration) -> None:
    """What a filter is given stays as it was."""
    part, past = config.build(), _example_history()
    for offer in _example_scores():
        before = offer.clone()
        part(offer, past)
        assert_equal(offer, before, "a score that the filter was given")
    assert_equal(past, _example_history(), "a token that the filter was given")


LAWS = (
    Law("never-increases", never_increases),
    Law("empty-history", empty_history),
    Law("hypothesis-independence", hypothesis_independence),
    Law("no-inplace", no_inplace),
)
