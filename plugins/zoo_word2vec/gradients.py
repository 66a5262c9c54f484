"""Gradients of skip-gram and CBOW with negative sampling, written out by hand."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

MAX_UPDATE = 3.2
"""Upper bound on the number of pairs of a word in an update, times the learning rate. Updates of
more pairs are scaled down, so that frequent words do not overshoot."""

Update = tuple[Tensor, Tensor, Tensor]
"""Rows of a table: indices [...], the pairs that each is part of [...], and gradients [..., D]."""
Gradients = tuple[list[Update], list[Update]]
"""Updates of the input vectors and of the output vectors."""


@dataclass(frozen=True)
class WindowChunk:
    """Centre words with their possible context words.

    Shapes:
        spans [C, S], word IDs; centers [C, L], the words in the middle of the span; window_mask
        [C, L, S], 1 where a word of the span is in the window of a centre word; noise [C, K'].
    """

    spans: Tensor
    centers: Tensor
    window_mask: Tensor
    noise: Tensor

    def split(self, parts: int) -> list[WindowChunk]:
        """Return the chunks in equal parts."""
        tensors = [getattr(self, field.name).chunk(parts) for field in fields(self)]
        return [WindowChunk(*part) for part in zip(*tensors, strict=True)]


class EmbeddingTable:
    """A table of vectors that is updated in place.

    Shapes:
        rows [V, D]; pairs [V], zeros between two updates.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows.detach()
        self.pairs = torch.zeros(len(rows), device=rows.device)

    def lookup(self, indices: Tensor) -> Tensor:
        """Return the vectors [..., D] of indices [...]."""
        return self.rows.index_select(0, indices.flatten()).view(*indices.shape, -1)

    def add(self, lr: float, *updates: Update) -> None:
        """Add the gradients of updates, which are overwritten, times the learning rate."""
        max_pairs = MAX_UPDATE / lr
        rows = [indices.flatten() for indices, _, _ in updates]
        for indices, (_, pairs, _) in zip(rows, updates, strict=True):
            self.pairs.index_add_(0, indices, pairs.flatten())
        scales = [lr * max_pairs / self.pairs[indices].clamp_(min=max_pairs) for indices in rows]
        for indices, scale, (_, _, change) in zip(rows, scales, updates, strict=True):
            self.pairs[indices] = 0
            scaled = change.flatten(0, -2).mul_(scale[:, None])
            self.rows.index_add_(0, indices, scaled.to(self.rows.dtype))


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """Compute a @ b; on the CPU with NumPy.

    For small matrices, torch 2.13 with oneDNN is 50 times slower on some processors if b is
    transposed.
    """
    if a.device.type != "cpu" or a.dtype != torch.float32:
        return a @ b
    return torch.from_numpy(np.matmul(a.numpy(), b.numpy()))


def skip_gram_gradients(
    words: EmbeddingTable, output: EmbeddingTable, chunk: WindowChunk, k: int
) -> Gradients:
    """Compute the gradients; each context word predicts the centre word: the same pairs.

    Args:
        k: number of noise words of a pair, as which those of the chunk count.
    """
    mask, share = chunk.window_mask.mT, k / chunk.noise.shape[1]  # [C, S, L]
    pairs = mask.sum(dim=2, keepdim=True)  # [C, S, 1], centre words that each input predicts
    num_centers = mask.shape[2]
    targets = torch.cat([chunk.centers, chunk.noise], dim=1)  # [C, L + K']
    inputs, candidates = words.lookup(chunk.spans), output.lookup(targets)
    scores = _matmul(inputs, candidates.mT)  # [C, S, L + K']
    scores[..., :num_centers].neg_()
    false = (pairs * -share).expand(-1, -1, chunk.noise.shape[1])
    scores.sigmoid_().mul_(torch.cat([mask, false], dim=2))
    counts = torch.cat([mask.sum(dim=1), (pairs.sum(dim=1) * share).expand_as(chunk.noise)], dim=1)
    of_inputs = (chunk.spans, pairs * (1 + k), _matmul(scores, candidates))
    return [of_inputs], [(targets, counts, _matmul(scores.mT, inputs))]


def cbow_gradients(
    words: EmbeddingTable, output: EmbeddingTable, chunk: WindowChunk, k: int
) -> Gradients:
    """Compute the gradients; the mean of the context words predicts the centre word.

    As in the authors' program, each context word receives the gradient of the mean, which is not
    divided by the number of context words.
    """
    inputs, centers = words.lookup(chunk.spans), output.lookup(chunk.centers)
    noise, share = output.lookup(chunk.noise), k / chunk.noise.shape[1]
    count = chunk.window_mask.sum(dim=2, keepdim=True)  # [C, L, 1]
    mix, counts = chunk.window_mask / count.clamp(min=1), (count > 0).float()
    means = _matmul(mix, inputs)  # [C, L, D]
    true = (means * centers).sum(dim=2, keepdim=True).neg_().sigmoid_() * counts
    false = _matmul(means, noise.mT).sigmoid_() * (counts * -share)
    noise_pairs = (counts.sum(dim=1) * share).expand_as(chunk.noise)
    change = _matmul(chunk.window_mask.mT, _matmul(false, noise).addcmul_(true, centers))
    return [(chunk.spans, chunk.window_mask.sum(dim=1) * (1 + k), change)], [
        (chunk.centers, counts, true * means),
        (chunk.noise, noise_pairs, _matmul(false.mT, means)),
    ]
