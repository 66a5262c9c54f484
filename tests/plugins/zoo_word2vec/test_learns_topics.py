"""Word vectors separate planted topics."""

import numpy as np
import pytest

import zoo
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.training import TrainingConfig, learn

TOPICS, WORDS, SENTENCES = 5, 20, 2000


def _sentences(seed):
    """Each sentence is about one of five topics; one word in five is from anywhere."""
    rng = np.random.default_rng(seed)
    for _ in range(SENTENCES):
        topic = rng.integers(TOPICS)
        strays = rng.random(12) < 0.2
        about = np.where(strays, rng.integers(TOPICS, size=12), topic)
        yield [f"{t}-{rng.integers(WORDS)}" for t in about]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
def test_the_nearest_words_are_of_the_same_topic(kind, seed):
    """Of each word's ten nearest, 95 % are of its own topic (chance: 19 %)."""
    corpus = Corpus.of(_sentences(seed), min_count=1)
    source = {"type": "token", "vocab": len(corpus.words), "dim": 24, "std": 0.02}
    spec = {"zoo": 1, "name": "topics", "model": {"type": kind, "source": source}}
    model = zoo.compose(spec, seed=seed)
    vectors = learn(model, corpus, TrainingConfig(epochs=10, sample=0.0, lr=0.05, seed=seed))
    right = [
        word.split("-")[0] == near.split("-")[0]
        for word in vectors.words
        for near, _ in vectors.most_similar(word, 10)
    ]
    assert np.mean(right) >= 0.95, np.mean(right)
