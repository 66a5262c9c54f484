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
from zoo_word2vec.table import plain_table

PIECE = 32
"""Words that share their drawn words, and scores that are computed together."""
PIECES = 16
"""Pieces between two updates."""
DRAWN = 32
"""Words drawn for a piece."""
REACH = 3.2
"""How many pairs of a word, times the rate, an update counts in full; more weigh no more, lest it
overshoot where a word comes often."""


@dataclass(frozen=True)
class Plan:
    """How to learn: the authors' defaults."""

    epochs: int = 5
    window: int = 5
    rate: float = 0.025
    last_rate: float = 0.0001
    sample: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        least = min(self.epochs, self.window)
        if least < 1 or min(self.rate, self.last_rate) <= 0 or self.sample < 0:
            raise ZooError(
                "epochs and window must be at least 1, both rates above 0, sample not below it; "
                f"this is {self}"
            )


@dataclass(frozen=True)
class Piece:
    """Words in the middle, with all that may be around them.

    Shapes:
        spans [C, S], word ids; middles [C, L], the words at S's middle; near [C, L, S], 1 where a
        word of the span is around a word of the middle; noise [C, K'].
    """

    spans: Tensor
    middles: Tensor
    near: Tensor
    noise: Tensor


class Table:
    """Vectors that learn.

    Shapes:
        rows [V, D]; pairs [V], zeros between two updates.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.pairs = torch.zeros(len(rows), device=rows.device)

    def add(self, rate: float, *updates: tuple[Tensor, Tensor, Tensor]) -> None:
        """Updates of which rows [...], for how many pairs [...], by what [..., D]."""
        most = REACH / rate
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
    plan: Plan | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> Vectors:
    """Teach the model a corpus; its vectors. Told the share that is done from time to time."""
    plan = plan or Plan()
    if not model.negatives:
        raise ZooError("only a model with negatives is learned this way; this one has none")
    if model.source.vocab != len(corpus.words):
        raise ZooError(
            f"the model has {model.source.vocab:,} words, the corpus {len(corpus.words):,} "
            "with the one for padding"
        )
    words, output = Table(plain_table(model.source)), Table(model.output.weight)
    step = _skip_gram_step if isinstance(model, SkipGram) else _cbow_step
    for done, piece in _pieces(corpus, plan, words.rows.device):
        rate = max(plan.rate * (1 - done), plan.last_rate)
        step(words, output, piece, model.negatives, rate)
        if progress is not None:
            progress(done)
    words.rows[0].zero_()
    # What stands for nothing is no word.
    return Vectors(corpus.words[1:], words.rows[1:].float().cpu().numpy())


def _pieces(corpus: Corpus, plan: Plan, device: torch.device) -> Iterator[tuple[float, Piece]]:
    """The corpus in pieces, epoch after epoch, each with the share that was done before it."""
    generator = torch.Generator().manual_seed(plan.seed)
    noise, w = corpus.noise(), plan.window
    at = torch.arange(PIECE + 2 * w) - w - torch.arange(PIECE)[:, None]
    distance = at.abs().where(at != 0, 2 * w)  # [L, S]; a word is not around itself
    stride = PIECE * PIECES
    for epoch in range(plan.epochs):
        ids, sentences = corpus.subsampled(plan.sample, generator)
        ids = torch.cat([ids.new_zeros(w), ids, ids.new_zeros(w + stride)])
        # Before the first and after the last word nothing is in any sentence.
        edge = sentences.new_full((w,), -1)
        sentences = torch.cat([edge, sentences, sentences.new_full((w + stride,), -1)])
        total = len(ids) - stride - 2 * w
        for start in range(0, total, stride):
            cut = slice(start, start + stride + 2 * w)
            spans = ids[cut].unfold(0, PIECE + 2 * w, PIECE)  # [C, S]
            inside = sentences[cut].unfold(0, PIECE + 2 * w, PIECE)
            own = inside[:, w : w + PIECE, None]
            reach = torch.randint(1, w + 1, (PIECES, PIECE, 1), generator=generator)
            near = (distance <= reach) & (own == inside[:, None]) & (own >= 0)
            drawn = torch.rand(PIECES, DRAWN, generator=generator, dtype=torch.float64)
            piece = Piece(
                spans.to(device),
                spans[:, w : w + PIECE].to(device),
                near.to(device, torch.float32),
                torch.searchsorted(noise, drawn).clamp_(max=len(noise) - 1).to(device),
            )
            yield (epoch + start / total) / plan.epochs, piece


def _skip_gram_step(words: Table, output: Table, piece: Piece, k: int, rate: float) -> None:
    """Each word around, as input, predicts the one in the middle: the same pairs, turned round."""
    inputs, middles = words.rows[piece.spans], output.rows[piece.middles]
    noise, share = output.rows[piece.noise], k / DRAWN
    pairs = piece.near.sum(dim=1)  # [C, S], how many middles each input predicts
    true = (middles @ inputs.mT).sigmoid_().neg_().add_(1).mul_(piece.near).mul_(rate)
    false = (inputs @ noise.mT).sigmoid_().mul_(pairs[..., None] * (-rate * share))
    drawn = (pairs.sum(dim=1, keepdim=True) * share).expand_as(piece.noise)
    words.add(rate, (piece.spans, pairs * (1 + k), (true.mT @ middles).baddbmm_(false, noise)))
    output.add(
        rate,
        (piece.middles, piece.near.sum(dim=2), true @ inputs),
        (piece.noise, drawn, false.mT @ inputs),
    )


def _cbow_step(words: Table, output: Table, piece: Piece, k: int, rate: float) -> None:
    """The mean of the words around predicts the one in the middle."""
    inputs, middles = words.rows[piece.spans], output.rows[piece.middles]
    noise, share = output.rows[piece.noise], k / DRAWN
    count = piece.near.sum(dim=2, keepdim=True)  # [C, L, 1]
    mix, counts = piece.near / count.clamp(min=1), (count > 0).float()
    means = mix @ inputs  # [C, L, D]
    true = (means * middles).sum(dim=2, keepdim=True).sigmoid_().neg_().add_(1) * counts * rate
    false = (means @ noise.mT).sigmoid_() * counts * (-rate * share)
    drawn = (counts.sum(dim=1) * share).expand_as(piece.noise)
    change = mix.mT @ (true * middles + false @ noise)
    words.add(rate, (piece.spans, mix.sum(dim=1) * (1 + k), change))
    output.add(
        rate,
        (piece.middles, counts, true * means),
        (piece.noise, drawn, false.mT @ means),
    )
