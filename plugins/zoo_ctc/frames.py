"""What the models with a CTC head share: frames to labels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from zoo import Decoded, Filter, FrameSampler, Sampler, ZooError


def read(
    logits: Tensor,
    mask: Tensor,
    sampler: FrameSampler,
    *,
    blank: int,
    pad: int,
    max_length: int,
    filters: Sequence[Filter],
) -> Decoded:
    """What the sampler reads off logits [B, T, V], cut after max_length labels."""
    if filters:
        names = ", ".join(f"'{each.name}'" for each in filters)
        raise ZooError(f"filters ({names}) act before each token, but frames are read at once")
    if max_length < 1:
        raise ZooError(f"max_length is {max_length}; it must be at least 1")
    logprobs = logits.float().log_softmax(dim=-1)
    if bool(logprobs[mask].isnan().any()):
        raise ZooError("the frames' logits are no numbers (NaN or inf)")
    decoded = sampler.read(logprobs, mask, blank=blank, pad=pad)
    return Decoded(decoded.tokens[..., :max_length], decoded.scores)


def frame_sampler(sampler: Sampler, model: str) -> FrameSampler:
    """The sampler, or ZooError if it is one that goes from token to token."""
    if not isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' chooses token by token, but model '{model}' says all its "
            "frames at once; choose one that reads frames, for example ctc-greedy"
        )
    return sampler


def random_labels(
    batch: int, length: int, barred: Sequence[int], vocab: int, generator: torch.Generator | None
) -> Tensor:
    """Labels [B, length // 2 or 1] that as many frames can spell, none of them barred."""
    allowed = [symbol for symbol in range(vocab) if symbol not in barred]
    device = generator.device if generator else None
    shape = (batch, max(length // 2, 1))
    drawn = torch.randint(0, len(allowed), shape, generator=generator, device=device)
    return torch.tensor(allowed, device=drawn.device)[drawn]
