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

import torch
from torch import Tensor

from zoo import ZooError
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.skip_gram import SkipGram
from zoo_word2vec.vectors import Vectors
from zoo_word2vec.word_model import get_table_weight

CHUNK_SIZE = 32
"""Words that share their noise words."""
CHUNKS_PER_UPDATE = 16
"""Chunks between two updates."""
NUM_NOISE = 32
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

    def add(self, lr: float, *updates: tuple[Tensor, Tensor, Tensor]) -> None:
        """Add updates of rows, each given as indices [...], pairs [...] and changes [..., D]."""
        max_pairs = MAX_UPDATE / lr
        rows = torch.cat([indices.flatten() for indices, _, _ in updates])
        changes = torch.cat([change.flatten(0, -2) for _, _, change in updates])
        self.pairs.index_add_(0, rows, torch.cat([pairs.flatten() for _, pairs, _ in updates]))
        changes *= (max_pairs / self.pairs[rows].clamp(min=max_pairs))[:, None]
        self.pairs[rows] = 0
        self.rows.index_add_(0, rows, changes.to(self.rows.dtype))


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
    offset = torch.arange(CHUNK_SIZE + 2 * w) - w - torch.arange(CHUNK_SIZE)[:, None]
    distance = offset.abs().where(offset != 0, 2 * w)  # [L, S]; the word itself is excluded
    stride = CHUNK_SIZE * CHUNKS_PER_UPDATE
    for epoch in range(config.epochs):
        ids, sentences = corpus.subsample(config.sample, generator)
        ids = torch.cat([ids.new_zeros(w), ids, ids.new_zeros(w + stride)])
        # Padding before the first and after the last word is in no sentence.
        edge = sentences.new_full((w,), -1)
        sentences = torch.cat([edge, sentences, sentences.new_full((w + stride,), -1)])
        total = len(ids) - stride - 2 * w
        for start in range(0, total, stride):
            span = slice(start, start + stride + 2 * w)
            spans = ids[span].unfold(0, CHUNK_SIZE + 2 * w, CHUNK_SIZE)  # [C, S]
            sentence = sentences[span].unfold(0, CHUNK_SIZE + 2 * w, CHUNK_SIZE)
            own = sentence[:, w : w + CHUNK_SIZE, None]
            radius = torch.randint(
                1, w + 1, (CHUNKS_PER_UPDATE, CHUNK_SIZE, 1), generator=generator
            )
            window_mask = (distance <= radius) & (own == sentence[:, None]) & (own >= 0)
            uniform = torch.rand(
                CHUNKS_PER_UPDATE, NUM_NOISE, generator=generator, dtype=torch.float64
            )
            chunk = Chunk(
                spans.to(device),
                spans[:, w : w + CHUNK_SIZE].to(device),
                window_mask.to(device, torch.float32),
                torch.searchsorted(noise_cdf, uniform).clamp_(max=len(noise_cdf) - 1).to(device),
            )
            yield (epoch + start / total) / config.epochs, chunk


def _skip_gram_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """Update both tables; each context word predicts the centre word: the same pairs."""
    inputs, centers = words.rows[chunk.spans], output.rows[chunk.centers]
    noise, share = output.rows[chunk.noise], k / NUM_NOISE
    pairs = chunk.window_mask.sum(dim=1)  # [C, S], centre words that each input predicts
    true = (centers @ inputs.mT).sigmoid_().neg_().add_(1).mul_(chunk.window_mask).mul_(lr)
    false = (inputs @ noise.mT).sigmoid_().mul_(pairs[..., None] * (-lr * share))
    noise_pairs = (pairs.sum(dim=1, keepdim=True) * share).expand_as(chunk.noise)
    words.add(lr, (chunk.spans, pairs * (1 + k), (true.mT @ centers).baddbmm_(false, noise)))
    output.add(
        lr,
        (chunk.centers, chunk.window_mask.sum(dim=2), true @ inputs),
        (chunk.noise, noise_pairs, false.mT @ inputs),
    )


def _cbow_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """Update both tables; the mean of the context words predicts the centre word.

    As in the authors' program, each context word receives the gradient of the mean, which is not
    divided by the number of context words.
    """
    inputs, centers = words.rows[chunk.spans], output.rows[chunk.centers]
    noise, share = output.rows[chunk.noise], k / NUM_NOISE
    count = chunk.window_mask.sum(dim=2, keepdim=True)  # [C, L, 1]
    mix, counts = chunk.window_mask / count.clamp(min=1), (count > 0).float()
    means = mix @ inputs  # [C, L, D]
    true = (means * centers).sum(dim=2, keepdim=True).sigmoid_().neg_().add_(1) * counts * lr
    false = (means @ noise.mT).sigmoid_() * counts * (-lr * share)
    noise_pairs = (counts.sum(dim=1) * share).expand_as(chunk.noise)
    change = chunk.window_mask.mT @ (true * centers + false @ noise)
    words.add(lr, (chunk.spans, chunk.window_mask.sum(dim=1) * (1 + k), change))
    output.add(
        lr,
        (chunk.centers, counts, true * means),
        (chunk.noise, noise_pairs, false.mT @ means),
    )
