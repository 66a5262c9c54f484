"""The nucleus of a large vocabulary, found without sorting all of it, on the CPU.

Notation: N rows, V vocabulary, M candidates of a row.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from zoo_fast.sampling.candidate_search import Array, Candidates, pad_candidates
from zoo_sampling.logits import apply_temperature

STRIDE = 16
"""One of this number of tokens is used to estimate the probability at which the nucleus ends."""
MARGIN = 0.8
"""Part of 1 - p that the tokens below the estimate should have."""


def nucleus(logits: Tensor, p: float, temperature: float) -> Candidates | None:
    """Return the nucleus of each row of logits [..., V], float32; None if a row is NaN.

    A token is kept if the more probable ones, and equal ones of a larger ID, have a total
    probability below p.
    """
    V = logits.shape[-1]
    probs = apply_temperature(logits, temperature).softmax(dim=-1).view(-1, V).numpy()
    found = _tokens_from(probs, _estimate(probs, p), logits.shape)
    if found is None or (found.logits.sum(axis=1) < p).any():
        # Tokens below (1 - p) / V have a total of at most 1 - p.
        found = _tokens_from(probs, np.float32((1 - p) / V), logits.shape)
    if found is None:
        return None
    is_kept = _smallest_set(found.logits, p).reshape(-1)[found.places]
    kept = np.full(found.logits.shape, -np.inf, np.float32)
    values = logits.reshape(-1).numpy().take(found.sources)
    kept.reshape(-1)[found.places] = np.where(is_kept, values, -np.inf)
    return replace(found, logits=kept)


def _estimate(probs: Array, p: float) -> Array:
    """Return probabilities [N, 1] such that those below are a little less than 1 - p in total."""
    sample = np.sort(probs[:, ::STRIDE], axis=1)
    is_below = sample.cumsum(axis=1) < MARGIN * (1 - p) / STRIDE
    index = is_below.sum(axis=1, keepdims=True).clip(max=sample.shape[1] - 1)
    return np.take_along_axis(sample, index, axis=1)


def _tokens_from(
    probs: Array, threshold: Array | np.float32, shape: torch.Size
) -> Candidates | None:
    """Return the tokens with at least a probability [N, 1]; their probabilities as logits."""
    sources = np.flatnonzero(probs >= threshold)
    return pad_candidates(sources // probs.shape[1], sources, probs.take(sources), shape, fill=0)


def _smallest_set(probs: Array, p: float) -> npt.NDArray[np.bool_]:
    """Return which of the probabilities [N, M] of candidates are in the nucleus: [N, M]."""
    descending = np.sort(probs, axis=1)[:, ::-1]
    above = descending.cumsum(axis=1, dtype=np.float64) - descending
    size = (above < max(p, 1e-30)).sum(axis=1, keepdims=True)
    threshold = np.take_along_axis(descending, size - 1, axis=1)
    is_kept = probs >= threshold
    num_removed = is_kept.sum(axis=1, keepdims=True) - size
    if num_removed.any():  # of equal ones, those of the smallest IDs
        is_equal = probs == threshold
        is_kept &= ~is_equal | (is_equal.cumsum(axis=1) > num_removed)
    return is_kept
