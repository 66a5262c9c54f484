"""The nucleus of a large vocabulary, found without sorting it, on the CPU.

Notation: N rows, V vocabulary, n buckets, M tokens of the bucket in which a nucleus ends.
"""

import numpy as np
import torch
from torch import Tensor

SHIFT = 16
"""A bucket holds the probabilities that differ in this number of last bits only."""


def nucleus(probs: Tensor, p: float) -> Tensor | None:
    """Return probs [N, V], float32, restricted to the nucleus of each row and normalised.

    A token is kept if the more probable ones, and equal ones of a larger ID, have a total
    probability below p. Returns None if so many tokens are nearly equal that sorting is as fast,
    or if a row is NaN.
    """
    N, V = probs.shape
    if bool(probs[:, 0].isnan().any()):
        return None
    # Tokens below (1 - p) / V, the first bucket, have a total of at most 1 - p.
    lowest = _bits((1 - p) / V)
    buckets = (probs.view(torch.int32) >> SHIFT).sub_(lowest).clamp_(min=0)
    mass = torch.zeros(N, _bits(1.0) - lowest + 2, dtype=torch.float64)
    mass.scatter_add_(1, buckets.long(), probs.double())
    above = mass.flip(1).cumsum(dim=1).flip(1) - mass  # [N, n]
    limit = (mass.sum(dim=1, keepdim=True) - (1 - p)).clamp(min=1e-30)  # p, if the sum is 1
    last = (above >= limit).sum(dim=1, keepdim=True)  # [N, 1]: the bucket in which the nucleus ends
    above = above.gather(1, last)

    hits = np.flatnonzero(buckets.numpy() == last.int().numpy())[::-1]
    if 8 * len(hits) > N * V:
        return None
    rows, tokens = (torch.from_numpy(part) for part in np.divmod(hits, V))
    counts = rows.bincount(minlength=N)
    columns = torch.arange(len(rows)) - (counts.flip(0).cumsum(0).flip(0) - counts)[rows]
    boundary = probs.new_full((N, int(counts.max())), -1.0)  # [N, M]
    boundary[rows, columns] = probs[rows, tokens]
    descending, order = boundary.sort(dim=1, descending=True, stable=True)
    including = above + descending.clamp(min=0).double().cumsum(dim=1)
    is_kept = (including - descending < limit) & (descending >= 0)
    size = is_kept.sum(dim=1, keepdim=True).clamp(min=1)
    least = descending.gather(1, size - 1)  # [N, 1]: the smallest probability that is kept
    kept = torch.ge(probs, least, out=torch.empty_like(probs)).mul_(probs)
    is_kept = torch.empty_like(is_kept).scatter_(1, order, is_kept)[rows, columns]
    kept[rows[~is_kept], tokens[~is_kept]] = 0.0
    return kept.div_(including.gather(1, size - 1).float())


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.int32)) >> SHIFT
