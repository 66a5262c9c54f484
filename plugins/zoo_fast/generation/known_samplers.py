"""Properties of classes of samplers; samplers of other classes use the reference path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.acceleration import plain_class
from zoo.generation.search import NextTokens
from zoo.plugin import Sampler, SearchState

LogitsStep = Callable[[Any, Tensor, SearchState, torch.Generator | None], NextTokens | None]


@dataclass(frozen=True)
class KnownSampler:
    """Properties of a class of samplers.

    Args:
        step: computes `Sampler.advance` from the decoder's logits [B, W, V], without the
            log-probabilities of the whole vocabulary; it is not used with filters of several
            hypotheses. A random sampler takes the random numbers of `Sampler.select` from the
            generator. Finished hypotheses continue with padding of log-probability 0; otherwise
            padding is not selected, unless ``search.task.selects_pad``. It returns None if it does
            not apply.
        keeps_items: whether the items have to stay in the batch, because the sampler is random or
            has tensors of the items outside its state.
    """

    step: LogitsStep | None = None
    keeps_items: bool = True


_KNOWN: dict[type[Sampler], KnownSampler] = {}
_UNKNOWN = KnownSampler()


def register_sampler(cls: type[Sampler], known: KnownSampler) -> None:
    """Register the properties of a class; they do not hold for its subclasses."""
    _KNOWN[cls] = known


def is_known(sampler: Sampler) -> bool:
    """Whether the class of a sampler has registered properties."""
    return plain_class(sampler) in _KNOWN


def known_sampler(sampler: Sampler) -> KnownSampler:
    """Return the properties of the class of a sampler."""
    return _KNOWN.get(plain_class(sampler), _UNKNOWN)
