r"""Learns word vectors from a corpus, as fast as matrix products go.

Stochastic gradient descent on negative sampling, written out by hand. Words are taken in pieces of
32: within one, all scores are a few small matrix products, and the drawn words are shared, each
weighing as much as the draws it stands for, so that the expected gradient is that of the paper.
Ji et al. 2016 (arXiv:1604.04661) found the same to converge as the original does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo import Vectors, ZooError
from zoo_word2vec.cbow import Cbow
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.skip_gram import SkipGram
from zoo_word2vec.word_model import get_table_weight

CHUNK_SIZE = 32
"""Words that share their drawn words, and scores that are computed together."""
CHUNKS_PER_UPDATE = 16
"""Pieces between two updates."""
NUM_NOISE = 32
"""Words drawn for a piece."""
MAX_UPDATE = 3.2
"""How many pairs of a word, times the rate, an update counts in full; more weigh no more, lest it
overshoot where a word comes often."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to learn: the authors' defaults."""

    epochs: int = 5
    window: int = 5
    lr: float = 0.025
    min_lr: float = 0.0001
    sample: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        least = min(self.epochs, self.window)
        if least < 1 or min(self.lr, self.min_lr) <= 0 or self.sample < 0:
            raise ZooError(
                "epochs and window must be at least 1, both rates above 0, sample not below it; "
                f"this is {self}"
            )


@dataclass(frozen=True)
class Chunk:
    """Words in the middle, with all that may be around them.

    Shapes:
        spans [C, S], word ids; middles [C, L], the words at S's middle; near [C, L, S], 1 where a
        word of the span is around a word of the middle; noise [C, K'].
    """

    spans: Tensor
    centers: Tensor
    window_mask: Tensor
    noise: Tensor


class EmbeddingTable:
    """Vectors that learn.

    Shapes:
        rows [V, D]; pairs [V], zeros between two updates.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.pairs = torch.zeros(len(rows), device=rows.device)

    def add(self, lr: float, *updates: tuple[Tensor, Tensor, Tensor]) -> None:
        """Updates of which rows [...], for how many pairs [...], by what [..., D]."""
        most = MAX_UPDATE / lr
        which = torch.cat([rows.flatten() for rows, _, _ in updates])
        by = torch.cat([change.flatten(0, -2) for _, _, change in updates])
        self.pairs.index_add_(0, which, torch.cat([pairs.flatten() for _, pairs, _ in updates]))
        by *= (most / self.pairs[which].clamp(min=most))[:, None]
        self.pairs[which] = 0
        self.rows.index_add_(0, which, by.to(self.rows.dtype))


@torch.no_grad()
def learn(
    model: SkipGram | Cbow,
    corpus: Corpus,
    plan: TrainingConfig | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> Vectors:
    """Teach the model a corpus; its vectors. Told the share that is done from time to time."""
    plan = plan or TrainingConfig()
    if not model.negatives:
        raise ZooError("only a model with negatives is learned this way; this one has none")
    if model.source.vocab != len(corpus.words):
        raise ZooError(
            f"the model has {model.source.vocab:,} words, the corpus {len(corpus.words):,} "
            "with the one for padding"
        )
    words, output = (
        EmbeddingTable(get_table_weight(model.source)),
        EmbeddingTable(model.output.weight),
    )
    step = _skip_gram_step if isinstance(model, SkipGram) else _cbow_step
    for done, chunk in _chunks(corpus, plan, words.rows.device):
        lr = max(plan.lr * (1 - done), plan.min_lr)
        step(words, output, chunk, model.negatives, lr)
        if progress is not None:
            progress(done)
    words.rows[0].zero_()
    # What stands for nothing is no word.
    return Vectors(corpus.words[1:], words.rows[1:].float().cpu().numpy())


def _chunks(
    corpus: Corpus, plan: TrainingConfig, device: torch.device
) -> Iterator[tuple[float, Chunk]]:
    """The corpus in pieces, epoch after epoch, each with the share that was done before it."""
    generator = torch.Generator().manual_seed(plan.seed)
    noise, w = corpus.noise(), plan.window
    at = torch.arange(CHUNK_SIZE + 2 * w) - w - torch.arange(CHUNK_SIZE)[:, None]
    distance = at.abs().where(at != 0, 2 * w)  # [L, S]; a word is not around itself
    stride = CHUNK_SIZE * CHUNKS_PER_UPDATE
    for epoch in range(plan.epochs):
        ids, sentences = corpus.subsample(plan.sample, generator)
        ids = torch.cat([ids.new_zeros(w), ids, ids.new_zeros(w + stride)])
        # Before the first and after the last word nothing is in any sentence.
        edge = sentences.new_full((w,), -1)
        sentences = torch.cat([edge, sentences, sentences.new_full((w + stride,), -1)])
        total = len(ids) - stride - 2 * w
        for start in range(0, total, stride):
            cut = slice(start, start + stride + 2 * w)
            spans = ids[cut].unfold(0, CHUNK_SIZE + 2 * w, CHUNK_SIZE)  # [C, S]
            inside = sentences[cut].unfold(0, CHUNK_SIZE + 2 * w, CHUNK_SIZE)
            own = inside[:, w : w + CHUNK_SIZE, None]
            reach = torch.randint(1, w + 1, (CHUNKS_PER_UPDATE, CHUNK_SIZE, 1), generator=generator)
            window_mask = (distance <= reach) & (own == inside[:, None]) & (own >= 0)
            drawn = torch.rand(
                CHUNKS_PER_UPDATE, NUM_NOISE, generator=generator, dtype=torch.float64
            )
            chunk = Chunk(
                spans.to(device),
                spans[:, w : w + CHUNK_SIZE].to(device),
                window_mask.to(device, torch.float32),
                torch.searchsorted(noise, drawn).clamp_(max=len(noise) - 1).to(device),
            )
            yield (epoch + start / total) / plan.epochs, chunk


def _skip_gram_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """Each word around, as input, predicts the one in the middle: the same pairs, turned round."""
    inputs, centers = words.rows[chunk.spans], output.rows[chunk.centers]
    noise, share = output.rows[chunk.noise], k / NUM_NOISE
    pairs = chunk.window_mask.sum(dim=1)  # [C, S], how many middles each input predicts
    true = (centers @ inputs.mT).sigmoid_().neg_().add_(1).mul_(chunk.window_mask).mul_(lr)
    false = (inputs @ noise.mT).sigmoid_().mul_(pairs[..., None] * (-lr * share))
    drawn = (pairs.sum(dim=1, keepdim=True) * share).expand_as(chunk.noise)
    words.add(lr, (chunk.spans, pairs * (1 + k), (true.mT @ centers).baddbmm_(false, noise)))
    output.add(
        lr,
        (chunk.centers, chunk.window_mask.sum(dim=2), true @ inputs),
        (chunk.noise, drawn, false.mT @ inputs),
    )


def _cbow_step(
    words: EmbeddingTable, output: EmbeddingTable, chunk: Chunk, k: int, lr: float
) -> None:
    """The mean of the words around predicts the one in the middle."""
    inputs, centers = words.rows[chunk.spans], output.rows[chunk.centers]
    noise, share = output.rows[chunk.noise], k / NUM_NOISE
    count = chunk.window_mask.sum(dim=2, keepdim=True)  # [C, L, 1]
    mix, counts = chunk.window_mask / count.clamp(min=1), (count > 0).float()
    means = mix @ inputs  # [C, L, D]
    true = (means * centers).sum(dim=2, keepdim=True).sigmoid_().neg_().add_(1) * counts * lr
    false = (means @ noise.mT).sigmoid_() * counts * (-lr * share)
    drawn = (counts.sum(dim=1) * share).expand_as(chunk.noise)
    change = mix.mT @ (true * centers + false @ noise)
    words.add(lr, (chunk.spans, mix.sum(dim=1) * (1 + k), change))
    output.add(
        lr,
        (chunk.centers, counts, true * means),
        (chunk.noise, drawn, false.mT @ means),
    )
