r"""Train word vectors on a corpus.

Stochastic gradient descent on negative sampling, with gradients written out by hand. Words are
processed in chunks of 32: all scores of a chunk are a few small matrix products, and its words
share their noise words, each weighted by the number of samples it replaces, so that the expected
gradient is that of the paper. Ji et al. 2016 (arXiv:1604.04661) report the same convergence as the
original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import ZooError
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.skip_gram import SkipGram
from zoo_word2vec.vectors import Vectors
from zoo_word2vec.word_model import get_table_weight

CHUNK_SIZE = 16
"""Words that share their noise words."""
CHUNKS_PER_UPDATE = 64
"""Chunks between two updates."""
NUM_NOISE = 16
"""Noise words sampled for a chunk."""
MAX_UPDATE = 3.2
"""Upper bound on the number of pairs of a word in an update, times the learning rate. Updates of
more pairs are scaled down, so that frequent words do not overshoot."""


@dataclass(frozen=True)
class TrainingConfig:
    """Hyperparameters, with the authors' defaults.

    Args:
        epochs: number of passes over the corpus.
        window: maximum distance of context words.
        lr: initial learning rate; None: 0.05 for CBOW, 0.025 for skip-gram.
        min_lr: final learning rate.
        sample: threshold of the subsampling of frequent words; 0 disables it.
        seed: seed of the random numbers.
    """

    epochs: int = 5
    window: int = 5
    lr: float | None = None
    min_lr: float = 0.0001
    sample: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        rates = [self.min_lr] if self.lr is None else [self.lr, self.min_lr]
        if min(self.epochs, self.window) < 1 or min(rates) <= 0 or self.sample < 0:
            raise ZooError(
                "epochs and window must be at least 1, lr and min_lr above 0, sample at least 0; "
                f"got {self}"
            )


@dataclass(frozen=True)
class Chunk:
    """Centre words with their possible context words.

    Shapes:
        spans [C, S], word IDs; centers [C, L], the words in the middle of the span; window_mask
        [C, L, S], 1 where a word of the span is in the window of a centre word; noise [C, K'].
    """

    spans: Tensor
    centers: Tensor
    window_mask: Tensor
    noise: Tensor


class EmbeddingTable:
    """A table of vectors that is updated in place.

    Shapes:
        rows [V, D]; pairs [V], zeros between two updates.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.pairs = torch.zeros(len(rows), device=rows.device)

    def lookup(self, indices: Tensor) -> Tensor:
        """Return the vectors [..., D] of indices [...]."""
        return self.rows.index_select(0, indices.flatten()).view(*indices.shape, -1)

    def add(self, lr: float, *updates: tuple[Tensor, Tensor, Tensor]) -> None:
        """Add updates of rows, each given as indices [...], pairs [...] and gradients [..., D]."""
        max_pairs = MAX_UPDATE / lr
        rows = [indices.flatten() for indices, _, _ in updates]
        for indices, (_, pairs, _) in zip(rows, updates, strict=True):
            self.pairs.index_add_(0, indices, pairs.flatten())
        scales = [lr * max_pairs / self.pairs[indices].clamp_(min=max_pairs) for indices in rows]
        for indices, scale, (_, _, change) in zip(rows, scales, updates, strict=True):
            self.pairs[indices] = 0
            scaled = change.flatten(0, -2) * scale[:, None]
            self.rows.index_add_(0, indices, scaled.to(self.rows.dtype))


@torch.no_grad()
def train(
    model: SkipGram | Cbow,
    corpus: Corpus,
    config: TrainingConfig | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> Vectors:
    """Train a model on a corpus, and return its word vectors.

    Args:
        progress: called before each update with the fraction of the training that is done.
    """
    config = config or TrainingConfig()
    if not model.negatives:
        raise ZooError("the model has negatives: 0; training needs at least 1")
    if model.source.vocab != len(corpus.words):
        raise ZooError(
            f"the model has a vocabulary of {model.source.vocab:,}, but the corpus has "
            f"{len(corpus.words):,} words, padding included"
        )
    words = EmbeddingTable(get_table_weight(model.source))
    output = EmbeddingTable(model.output.weight)
    step, lr_start = (_skip_gram_step, 0.025) if isinstance(model, SkipGram) else (_cbow_step, 0.05)
    if config.lr is not None:
        lr_start = config.lr
    for done, chunk in _chunks(corpus, config, words.rows.device):
        lr = max(lr_start * (1 - done), config.min_lr)
        step(words, output, chunk, model.negatives, lr)
        if progress is not None:
            progress(done)
    words.rows[0].zero_()  # padding, which is not a word
    return Vectors(corpus.words[1:], words.rows[1:].float().cpu().numpy())


def _chunks(
    corpus: Corpus, config: TrainingConfig, device: torch.device
) -> Iterator[tuple[float, Chunk]]:
    """Yield chunks of the corpus for all epochs, each with the fraction done before it."""
    generator = torch.Generator().manual_seed(config.seed)
    noise_cdf, w = corpus.noise_cdf(), config.window
    offset = torch.arange(CHUNK_SIZE + 2 * w) - w - torch.arange(CHUNK_SIZE)[:, None]  # [L, S]
    offset, other = offset.int(), offset != 0  # the word itself is excluded
    for epoch in range(config.epochs):
        ids, sentences = corpus.subsample(config.sample, generator)
        total = len(ids)
        padding = -total % (CHUNK_SIZE * CHUNKS_PER_UPDATE)
        left, right = _windows(sentences, w, generator)
        left, right = (F.pad(x, (0, padding)).view(-1, CHUNK_SIZE, 1) for x in (left, right))
        spans = F.pad(ids, (w, w + padding)).unfold(0, CHUNK_SIZE + 2 * w, CHUNK_SIZE)
        for start in range(0, len(spans), CHUNKS_PER_UPDATE):
            part = slice(start, start + CHUNKS_PER_UPDATE)
            window_mask = (offset >= left[part]) & (offset <= right[part]) & other
            uniform = torch.rand(
                CHUNKS_PER_UPDATE, NUM_NOISE, generator=generator, dtype=torch.float64
            )
            span = spans[part].to(device)  # [C, S]
            chunk = Chunk(
                span,
                span[:, w : w + CHUNK_SIZE],
                window_mask.to(device, torch.float32),
                torch.searchsorted(noise_cdf, uniform).clamp_(max=len(noise_cdf) - 1).to(device),
            )
            yield (epoch + start * CHUNK_SIZE / total) / config.epochs, chunk


def _windows(sentences: Tensor, window: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample a radius for each word, and return the offsets [N] of its first and last neighbour.

    Neighbours are in the same sentence.
    """
    place = torch.arange(len(sentences))
    _, lengths = sentences.unique_consecutive(return_counts=True)
    end = lengths.cumsum(0).repeat_interleave(lengths)
    start = end - lengths.repeat_interleave(lengths)
    radius = torch.randint(1, window + 1, (len(sentences),), generator=generator)
    left, right = torch.maximum(-radius, start - place), torch.minimum(radius, end - 1 - place)
    return left.int(), right.int()


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """Compute a @ b; on the CPU with NumPy.

    For small matrices, torch 2.13 with oneDNN is 50 times slower on some processors if b is
    transposed.
    """
    if a.device.type != "cpu" or a.dtype != torch.float32:
        return a @ b
    return torch.from_numpy(np.matmul(a.numpy(), b.numpy()))


def _skip_gram_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """Update both tables; each context word predicts the centre word: the same pairs."""
    mask, share = chunk.window_mask.mT, k / NUM_NOISE  # [C, S, L]
    pairs = mask.sum(dim=2, keepdim=True)  # [C, S, 1], centre words that each input predicts
    num_centers = mask.shape[2]
    targets = torch.cat([chunk.centers, chunk.noise], dim=1)  # [C, L + K']
    inputs, candidates = words.lookup(chunk.spans), output.lookup(targets)
    scores = _matmul(inputs, candidates.mT)  # [C, S, L + K']
    scores[..., :num_centers].neg_()
    false = (pairs * -share).expand(-1, -1, chunk.noise.shape[1])
    scores.sigmoid_().mul_(torch.cat([mask, false], dim=2))
    counts = torch.cat([mask.sum(dim=1), (pairs.sum(dim=1) * share).expand_as(chunk.noise)], dim=1)
    words.add(lr, (chunk.spans, pairs * (1 + k), _matmul(scores, candidates)))
    output.add(lr, (targets, counts, _matmul(scores.mT, inputs)))


def _cbow_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """Update both tables; the mean of the context words predicts the centre word.

    As in the authors' program, each context word receives the gradient of the mean, which is not
    divided by the number of context words.
    """
    inputs, centers = words.lookup(chunk.spans), output.lookup(chunk.centers)
    noise, share = output.lookup(chunk.noise), k / NUM_NOISE
    count = chunk.window_mask.sum(dim=2, keepdim=True)  # [C, L, 1]
    mix, counts = chunk.window_mask / count.clamp(min=1), (count > 0).float()
    means = _matmul(mix, inputs)  # [C, L, D]
    true = (means * centers).sum(dim=2, keepdim=True).neg_().sigmoid_() * counts
    false = _matmul(means, noise.mT).sigmoid_() * (counts * -share)
    noise_pairs = (counts.sum(dim=1) * share).expand_as(chunk.noise)
    change = _matmul(chunk.window_mask.mT, _matmul(false, noise).addcmul_(true, centers))
    words.add(lr, (chunk.spans, chunk.window_mask.sum(dim=1) * (1 + k), change))
    output.add(
        lr,
        (chunk.centers, counts, true * means),
        (chunk.noise, noise_pairs, _matmul(false.mT, means)),
    )
