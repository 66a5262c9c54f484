"""Benchmark 'word2vec'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field

import zoo
from zoo_lab.bench.benchmark import Benchmark
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.skip_gram import SkipGram
from zoo_word2vec.training import TrainingConfig, train
from zoo_word2vec.vectors import Vectors

_SENTENCE = 20
_WINDOW, _NEGATIVES, _SAMPLE, _MIN_COUNT = 5, 5, 1e-3, 5


class Word2VecBenchmark(Benchmark):
    """Skip-gram with negative sampling, one epoch from tokenised sentences, compared with gensim.

    Words have frequencies by Zipf's law. Both use the same hyperparameters and the same number of
    threads.

    Args:
        words: number of words of the corpus.
        vocab: number of different words.
        dim: width of the vectors.
    """

    name: ClassVar[str] = "word2vec"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 1.5
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"words": (100_000, 1_000_000)}
    packages: ClassVar[Sequence[str]] = ("gensim",)
    test_params: ClassVar[Mapping[str, Any]] = {
        "words": 2_000,
        "vocab": 40,
        "dim": 16,
    }

    def __init__(
        self,
        *,
        words: Annotated[int, Field(ge=_SENTENCE)] = 1_000_000,
        vocab: Annotated[int, Field(ge=2)] = 20_000,
        dim: Annotated[int, Field(ge=1)] = 100,
    ) -> None:
        self.words, self.vocab, self.dim = words, vocab, dim

    def prepare(self, device: torch.device) -> None:
        share = 1 / np.arange(1, self.vocab + 1)
        shape = (self.words // _SENTENCE, _SENTENCE)
        ids = _generator().choice(self.vocab, size=shape, p=share / share.sum())
        self.sentences = [[f"w{word}" for word in row] for row in ids.tolist()]

    def check(self) -> None:
        """Train on a corpus of two topics: the nearest words have the same topic."""
        generator = _generator()
        topics = generator.integers(2, size=(1000, 1))
        ids = 2 * generator.integers(10, size=(1000, _SENTENCE)) + topics
        vectors = self._train([[f"w{word}" for word in row] for row in ids.tolist()], epochs=5)
        correct = [
            int(word[1:]) % 2 == int(near[1:]) % 2
            for word in vectors.words
            for near, _ in vectors.most_similar(word, 5)
        ]
        assert np.mean(correct) > 0.9, f"{np.mean(correct):.0%} of the nearest words have the topic"

    def run(self) -> Vectors:
        return self._train(self.sentences, epochs=1)

    def _train(self, sentences: Sequence[Sequence[str]], epochs: int) -> Vectors:
        corpus = Corpus.from_sentences(sentences, min_count=_MIN_COUNT)
        source = {"type": "token", "vocab": len(corpus.words), "dim": self.dim}
        model = {"type": "skip-gram", "source": source, "negatives": _NEGATIVES}
        built = zoo.compose({"zoo": 1, "name": self.name, "model": model})
        assert isinstance(built, SkipGram)
        return train(built, corpus, TrainingConfig(epochs=epochs, window=_WINDOW, sample=_SAMPLE))

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"gensim": self._gensim}

    def _gensim(self) -> Callable[[], Any]:
        from gensim.models import Word2Vec

        return lambda: Word2Vec(
            self.sentences,
            sg=1,
            vector_size=self.dim,
            window=_WINDOW,
            negative=_NEGATIVES,
            sample=_SAMPLE,
            min_count=_MIN_COUNT,
            epochs=1,
            workers=torch.get_num_threads(),
            seed=1,
        )

    def items(self) -> tuple[int, str]:
        return self.words, "words"


def _generator() -> np.random.Generator:
    """Return a generator whose seed is from torch's."""
    return np.random.default_rng(int(torch.randint(2**31, ()).item()))
