"""Skip-gram against gensim: words per second and quality of the vectors.

    python benchmarks/word2vec.py [THREADS]

Both train for one epoch on the same tokenised sentences with the same hyperparameters, alternating
in one process. Quality is the fraction of each word's ten nearest words that have its topic, for
planted topics.
"""

import statistics
import sys
import time

import numpy as np
import torch
from gensim.models import Word2Vec

import zoo
from zoo_word2vec import Vectors
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.training import TrainingConfig, train

DIM, WINDOW, NEGATIVES, SAMPLE, MIN_COUNT = 100, 5, 5, 1e-3, 5
TOPICS, REPEATS, WORDS = 50, 3, 1_000_000


def sentences(rng):
    """Return a million words by Zipf's law in sentences of twenty, half of one topic."""
    vocabulary = 20_000
    share = 1 / np.arange(1, vocabulary + 1)
    ids = rng.choice(vocabulary, size=(WORDS // 20, 20), p=share / share.sum())
    topic = rng.integers(TOPICS, size=(len(ids), 1))
    on_topic = ids // TOPICS * TOPICS + topic  # word i has topic i % TOPICS
    ids = np.where(rng.random(ids.shape) < 0.5, on_topic, ids)
    return [[f"w{word}" for word in row] for row in ids.tolist()]


def train_gensim(texts, threads):
    model = Word2Vec(
        texts,
        sg=1,
        vector_size=DIM,
        window=WINDOW,
        negative=NEGATIVES,
        sample=SAMPLE,
        min_count=MIN_COUNT,
        epochs=1,
        workers=threads,
        seed=1,
    )
    return Vectors(model.wv.index_to_key, model.wv.vectors)


def train_zoo(texts, threads):
    torch.set_num_threads(threads)
    corpus = Corpus.from_sentences(texts, min_count=MIN_COUNT)
    source = {"type": "token", "vocab": len(corpus.words), "dim": DIM}
    model = {"type": "skip-gram", "source": source, "negatives": NEGATIVES}
    built = zoo.compose({"zoo": 1, "name": "benchmark", "model": model})
    return train(built, corpus, TrainingConfig(epochs=1, window=WINDOW, sample=SAMPLE))


def topic_precision(vectors):
    words = [word for word in vectors.words if 100 <= int(word[1:]) < 600]
    correct = [
        int(word[1:]) % TOPICS == int(near[1:]) % TOPICS
        for word in words
        for near, _ in vectors.most_similar(word, 10)
    ]
    return float(np.mean(correct))


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    texts = sentences(np.random.default_rng(0))
    trainers = {"gensim": train_gensim, "zoo": train_zoo}
    times, precision = {name: [] for name in trainers}, {}
    for _ in range(REPEATS):
        for name, fit in trainers.items():
            start = time.perf_counter()
            vectors = fit(texts, threads)
            times[name].append(time.perf_counter() - start)
            precision[name] = topic_precision(vectors)
    for name in trainers:
        speed = WORDS / statistics.median(times[name])
        print(f"{name:7} {speed:10,.0f} words/s  {precision[name]:6.1%} of neighbours on topic")
    ratio = statistics.median(times["gensim"]) / statistics.median(times["zoo"])
    print(f"ratio   {ratio:.2f} of gensim's words per second ({threads} threads; target: 0.50)")


if __name__ == "__main__":
    main()
