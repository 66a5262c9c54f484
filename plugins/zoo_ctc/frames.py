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
    labels: Sequence[int],
    max_length: int,
    filters: Sequence[Filter],
) -> Decoded:
    """What the sampler reads off logits [B, T, V], cut after max_length labels.

    Symbols that are neither blank nor labels, such as the padding, are never read.
    """
    if filters:
        names = ", ".join(f"'{each.name}'" for each in filters)
        raise ZooError(f"filters ({names}) act before each token, but frames are read at once")
    if max_length < 1:
        raise ZooError(f"max_length is {max_length}; it must be at least 1")
    logprobs = logits.float().log_softmax(dim=-1)
    if bool(logprobs[mask].isnan().any()):
        raise ZooError("the frames' logits are no numbers (NaN or inf)")
    barred = torch.ones(logprobs.shape[-1], dtype=torch.bool, device=logprobs.device)
    barred[[blank, *labels]] = False
    logprobs = logprobs.masked_fill(barred, float("-inf"))
    decoded = sampler.read(logprobs, mask, blank=blank, pad=pad)
    silent = decoded.scores[:, 0].isneginf()
    if bool(silent.any()):
        item = int(silent.int().argmax())
        raise ZooError(
            f"nothing can be said for item {item}: every labelling is impossible, by the frames "
            "or by the language model"
        )
    return Decoded(decoded.tokens[..., :max_length], decoded.scores)


def frame_sampler(sampler: Sampler, model: str) -> FrameSampler:
    """The sampler, or ZooError if it is one that goes from token to token."""
    if not isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' chooses token by token, but model '{model}' says all its "
            "frames at once; choose one that reads frames, for example ctc-greedy"
        )
    return sampler


def labels_of(vocab: int, **barred: int) -> list[int]:
    """The symbols that can be labels, or ZooError if there is none beside those barred by name."""
    found = [symbol for symbol in range(vocab) if symbol not in barred.values()]
    if not found:
        names = ", ".join(f"{name} ({symbol})" for name, symbol in barred.items())
        raise ZooError(f"vocab ({vocab}) has no symbol for a label beside {names}")
    return found


def random_labels(
    batch: int, length: int, labels: Sequence[int], generator: torch.Generator | None
) -> Tensor:
    """Some of the labels, half as many as the frames, which can spell them even if all repeat."""
    device = generator.device if generator else None
    shape = (batch, (length + 1) // 2)
    drawn = torch.randint(0, len(labels), shape, generator=generator, device=device)
    return torch.tensor(labels, device=drawn.device)[drawn]
