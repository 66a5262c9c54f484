r"""Train word vectors on a corpus.

Stochastic gradient descent on negative sampling, with gradients written out by hand. Words are
processed in chunks of 16: all scores of a chunk are a few small matrix products, and its words
share their noise words, each weighted by the number of samples it replaces, so that the expected
gradient is that of the paper. Ji et al. 2016 (arXiv:1604.04661) report the same convergence as the
original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import ZooError
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.gradients import (
    EmbeddingTable,
    Update,
    WindowChunk,
    cbow_gradients,
    skip_gram_gradients,
)
from zoo_word2vec.skip_gram import SkipGram
from zoo_word2vec.vectors import Vectors
from zoo_word2vec.word_model import get_table_weight

CHUNK_SIZE = 16
"""Words that share their noise words."""
CHUNKS_PER_UPDATE = 64
"""Chunks between two updates."""
NUM_NOISE = 16
"""Noise words sampled for a chunk."""


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
    is_skip_gram = isinstance(model, SkipGram)
    compute = skip_gram_gradients if is_skip_gram else cbow_gradients
    lr_start = config.lr or (0.025 if is_skip_gram else 0.05)
    device = words.rows.device
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    with ThreadPoolExecutor(threads) as pool:
        run = map if threads == 1 else pool.map
        for done, chunk in _chunks(corpus, config, device):
            lr = max(lr_start * (1 - done), config.min_lr)
            found = run(
                lambda part: compute(words, output, part, model.negatives), chunk.split(threads)
            )
            updates = zip(*found, strict=True)  # those of `words`, then those of `output`
            list(run(partial(_add, lr), (words, output), updates))
            if progress is not None:
                progress(done)
    words.rows[0].zero_()  # padding, which is not a word
    return Vectors(corpus.words[1:], words.rows[1:].float().cpu().numpy())


def _add(lr: float, table: EmbeddingTable, updates: Iterable[list[Update]]) -> None:
    table.add(lr, *chain.from_iterable(updates))


def _chunks(
    corpus: Corpus, config: TrainingConfig, device: torch.device
) -> Iterator[tuple[float, WindowChunk]]:
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
            chunk = WindowChunk(
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
    _, lengths = torch.unique_consecutive(sentences, return_counts=True)
    end = lengths.cumsum(0).repeat_interleave(lengths)
    start = end - lengths.repeat_interleave(lengths)
    radius = torch.randint(1, window + 1, (len(sentences),), generator=generator)
    left, right = torch.maximum(-radius, start - place), torch.minimum(radius, end - 1 - place)
    return left.int(), right.int()
