"""Skip-gram against gensim: words a second and what was learned, in turns, in one run.

    python benchmarks/word2vec.py [THREADS]

Both get the same tokenised sentences and count, thin out and learn them in one epoch with the same
settings. What was learned is judged by planted topics: the share of each word's ten nearest that
are of its own topic.
"""

import statistics
import sys
import time

import numpy as np
import torch
from gensim.models import Word2Vec

import zoo
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.training import TrainingConfig, learn

DIM, WINDOW, NEGATIVES, SAMPLE, MIN_COUNT = 100, 5, 5, 1e-3, 5
TOPICS, REPEATS, WORDS = 50, 3, 1_000_000


def sentences(rng):
    """A million words by Zipf's law in sentences of twenty; in each, half are of one topic."""
    vocabulary = 20_000
    share = 1 / np.arange(1, vocabulary + 1)
    ids = rng.choice(vocabulary, size=(WORDS // 20, 20), p=share / share.sum())
    topic = rng.integers(TOPICS, size=(len(ids), 1))
    about = ids // TOPICS * TOPICS + topic  # word i is of topic i % TOPICS
    ids = np.where(rng.random(ids.shape) < 0.5, about, ids)
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
    return zoo.Vectors(model.wv.index_to_key, model.wv.vectors)


def train_zoo(texts, threads):
    torch.set_num_threads(threads)
    corpus = Corpus.of(texts, min_count=MIN_COUNT)
    source = {"type": "token", "vocab": len(corpus.words), "dim": DIM, "std": 0.003}
    model = {"type": "skip-gram", "source": source, "negatives": NEGATIVES}
    built = zoo.compose({"zoo": 1, "name": "benchmark", "model": model})
    return learn(built, corpus, TrainingConfig(epochs=1, window=WINDOW, sample=SAMPLE))


def topic_precision(vectors):
    asked = [word for word in vectors.words if 100 <= int(word[1:]) < 600]
    right = [
        int(word[1:]) % TOPICS == int(near[1:]) % TOPICS
        for word in asked
        for near, _ in vectors.most_similar(word, 10)
    ]
    return float(np.mean(right))


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    texts = sentences(np.random.default_rng(0))
    trainers = {"gensim": train_gensim, "zoo": train_zoo}
    times, learned = {name: [] for name in trainers}, {}
    for _ in range(REPEATS):
        for name, train in trainers.items():
            start = time.perf_counter()
            vectors = train(texts, threads)
            times[name].append(time.perf_counter() - start)
            learned[name] = topic_precision(vectors)
    for name in trainers:
        speed = WORDS / statistics.median(times[name])
        print(f"{name:7} {speed:10,.0f} words/s  {learned[name]:6.1%} of neighbours on topic")
    ratio = statistics.median(times["gensim"]) / statistics.median(times["zoo"])
    print(f"ratio   {ratio:.2f} of gensim's words a second ({threads} threads; to reach: 0.50)")


if __name__ == "__main__":
    main()
