"""Program 'word-similarity': word vectors against those of gensim on sets of word pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

import zoo
from zoo.plugin import MissingExtra, Part, Program, ProgramRun, TextLines
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.training import TrainingConfig, train
from zoo_word2vec.vectors import Vectors

RATES = {"skip-gram": 0.025, "cbow": 0.05}


class SimilarityProgram(Program, Part):
    r"""Rank correlation of vector similarities with human ones, for this library and for gensim.

    .. math:: \rho = \mathrm{corr}(\mathrm{rank}(\cos(v_a, v_b)), \mathrm{rank}(s_{ab}))

    Both train on the same corpus, in lower case, with the same hyperparameters. Pairs with a word
    that is not in the vocabulary are left out; their number is a figure, too.

    Paper: Mikolov et al. 2013; Spearman 1904.

    Args:
        corpus: text file with words separated by spaces, one text per line.
        sets: text files of word pairs, each line with two words and a score.
        model: skip-gram or CBOW.
        dim: width of the vectors.
        window: maximum distance of context words.
        epochs: number of passes over the corpus.
        min_count: words that occur less often are left out.
        threads: number of threads of both.

    Shapes:
        pairs of words -> for each set NAME {zoo/NAME, gensim/NAME, difference/NAME, pairs/NAME}.
    """

    name: ClassVar[str] = "word-similarity"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Distributed Representations of Words and Phrases and their "
        "Compositionality, arXiv:1310.4546"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"corpus": "text.txt", "sets": ["pairs.txt"]}

    def __init__(
        self,
        *,
        corpus: str,
        sets: Annotated[list[str], Field(min_length=1)],
        model: Literal["skip-gram", "cbow"] = "skip-gram",
        dim: Annotated[int, Field(ge=1)] = 100,
        window: Annotated[int, Field(ge=1)] = 5,
        epochs: Annotated[int, Field(ge=1)] = 5,
        min_count: Annotated[int, Field(ge=1)] = 5,
        threads: Annotated[int, Field(ge=1)] = 1,
    ) -> None:
        self.corpus, self.sets, self.model = corpus, sets, model
        self.dim, self.window, self.epochs = dim, window, epochs
        self.min_count, self.threads = min_count, threads

    def run(self, run: ProgramRun) -> Mapping[str, float]:
        texts = [line.lower().split() for line in TextLines(self.corpus) if line.strip()]
        ours = self._train(texts, run)
        theirs = self._train_gensim(texts, run.seed)
        values = {}
        for file in self.sets:
            lines = TextLines(file)
            pairs = [line.lower().split() for line in lines if line.strip()]
            name = Path(lines.path).name.partition(".")[0]
            values[f"zoo/{name}"], count = correlation(ours, pairs)
            values[f"gensim/{name}"], _ = correlation(theirs, pairs)
            values[f"difference/{name}"] = values[f"zoo/{name}"] - values[f"gensim/{name}"]
            values[f"pairs/{name}"] = float(count)
        return values

    def _train(self, texts: Sequence[Sequence[str]], run: ProgramRun) -> Vectors:
        corpus = Corpus.from_sentences(texts, min_count=self.min_count)
        sizes = [f"model.source.vocab={len(corpus.words)}", f"model.source.dim={self.dim}"]
        model = zoo.compose(f"{self.model}-2013", overrides=sizes, seed=run.seed, device=run.device)
        config = TrainingConfig(epochs=self.epochs, window=self.window, seed=run.seed)
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            report = run.progress
            done = (
                None if report is None else lambda share: report(self.name, round(100 * share), 100)
            )
            return train(model, corpus, config, progress=done)  # type: ignore[arg-type]
        finally:
            torch.set_num_threads(threads)

    def _train_gensim(self, texts: Sequence[Sequence[str]], seed: int) -> Vectors:
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise MissingExtra(f"program '{self.name}'", library="gensim", extra="test") from None
        model = Word2Vec(
            texts,
            sg=int(self.model == "skip-gram"),
            alpha=RATES[self.model],
            vector_size=self.dim,
            window=self.window,
            negative=5,
            sample=TrainingConfig().sample,
            min_count=self.min_count,
            epochs=self.epochs,
            workers=self.threads,
            seed=seed,
        )
        return Vectors(model.wv.index_to_key, model.wv.vectors)


def correlation(vectors: Vectors, pairs: Sequence[Sequence[str]]) -> tuple[float, int]:
    """Return the rank correlation, and the number of pairs whose words both have a vector."""
    known = set(vectors.words)
    rows = [
        (vectors.similarity(a, b), float(score))
        for a, b, score in pairs
        if a in known and b in known
    ]
    if len(rows) < 2:
        return float("nan"), len(rows)
    ours, scores = (mean_ranks(np.array(column)) for column in zip(*rows, strict=True))
    return float(np.corrcoef(ours, scores)[0, 1]), len(rows)


def mean_ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Return ranks, the mean rank for ties."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[Any] = (counts.cumsum() - (counts - 1) / 2)[inverse]
    return ranks
