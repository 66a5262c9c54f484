"""The laws of filters."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.testing.law import Law
from zoo.testing.laws.tensors import noise, same, untouched
from zoo.testing.subject import Subject


def _offers() -> tuple[Tensor, Tensor]:
    """Logits, then log-probabilities, as the loop offers them: each [B, W, V]."""
    logits = noise(2, 3, 6)
    logits[0, 0, 1] = float("-inf")
    return logits, logits.log_softmax(dim=-1)


def _past(length: int = 7) -> Tensor:
    """Few symbols, so that they repeat: [B, W, T]."""
    return torch.randint(0, 3, (2, 3, length), generator=torch.Generator().manual_seed(0))


def never_likelier(subject: Subject) -> None:
    """A filter lowers scores or leaves them; none rises and none becomes NaN."""
    part = subject.part()
    for offer in _offers():
        left = part(offer, _past())
        assert left.shape == offer.shape, f"{list(left.shape)}, not {list(offer.shape)}"
        assert not left.isnan().any(), "a score became NaN"
        assert (left <= offer).all(), "a token became likelier"


def nothing_said(subject: Subject) -> None:
    """Where nothing was said before, nothing changes."""
    part = subject.part()
    for offer in _offers():
        untouched(part(offer, _past(0)), offer, "a score with no past")


def own_past(subject: Subject) -> None:
    """Each hypothesis is filtered by its own past alone."""
    part, past = subject.part(), _past()
    for offer in _offers():
        left = part(offer, past)
        for b in range(2):
            for w in range(3):
                alone = part(offer[b, w][None, None], past[b, w][None, None])[0, 0]
                same(left[b, w], alone, "a score beside other hypotheses", 1e-12)


def left_untouched(subject: Subject) -> None:
    """What a filter is given stays as it was."""
    part, past = subject.part(), _past()
    for offer in _offers():
        before = offer.clone()
        part(offer, past)
        untouched(offer, before, "a score that the filter was given")
    untouched(past, _past(), "a token that the filter was given")


LAWS = (
    Law("never-likelier", never_likelier),
    Law("nothing-said", nothing_said),
    Law("own-past", own_past),
    Law("left-untouched", left_untouched),
)
