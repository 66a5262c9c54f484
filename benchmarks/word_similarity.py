"""Word vectors of skip-gram and CBOW against gensim: rank correlation with WS-353.

    python benchmarks/word_similarity.py [THREADS]

Trains on WikiText-2 with the same hyperparameters on both sides, dim 100, 5 epochs; prints the mean
over three seeds. Needs the data sets `wikitext2` and `word-similarity` (ZOO_DATA).
"""

import lzma
import os
import sys
from pathlib import Path

import numpy as np
import torch
from gensim.models import Word2Vec

import zoo
from zoo_word2vec import Vectors
from zoo_word2vec.corpus import Corpus
from zoo_word2vec.training import TrainingConfig, train

DATA = Path(os.environ.get("ZOO_DATA", Path(__file__).parents[2] / "shared" / "data"))
DIM, WINDOW, NEGATIVES, SAMPLE, MIN_COUNT, EPOCHS = 100, 5, 5, 1e-3, 5, 5
RATES = {"skip-gram": 0.025, "cbow": 0.05}
SEEDS = (1, 2, 3)


def read(name):
    with lzma.open(DATA / name, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def train_gensim(texts, kind, threads, seed):
    model = Word2Vec(
        texts,
        sg=int(kind == "skip-gram"),
        alpha=RATES[kind],
        vector_size=DIM,
        window=WINDOW,
        negative=NEGATIVES,
        sample=SAMPLE,
        min_count=MIN_COUNT,
        epochs=EPOCHS,
        workers=threads,
        seed=seed,
    )
    return Vectors(model.wv.index_to_key, model.wv.vectors)


def train_zoo(texts, kind, threads, seed):
    torch.set_num_threads(threads)
    corpus = Corpus.from_sentences(texts, min_count=MIN_COUNT)
    sizes = [f"model.source.vocab={len(corpus.words)}", f"model.source.dim={DIM}"]
    model = zoo.compose(f"{kind}-2013", overrides=sizes, seed=seed)
    config = TrainingConfig(epochs=EPOCHS, window=WINDOW, sample=SAMPLE, seed=seed)
    return train(model, corpus, config)


def spearman(vectors, pairs):
    """Return the rank correlation, and the number of pairs whose words both have a vector."""
    known = set(vectors.words)
    rows = [
        (vectors.similarity(a, b), float(score))
        for a, b, score in pairs
        if a in known and b in known
    ]
    ranks = [_ranks(np.array(column)) for column in zip(*rows, strict=True)]
    return float(np.corrcoef(*ranks)[0, 1]), len(rows)


def _ranks(values):
    """Return ranks, the mean rank for ties."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[inverse]


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    lines = read("wikitext2/wiki.train.tokens.xz")
    texts = [line.lower().split() for line in lines if line.strip()]
    pairs = [line.lower().split() for line in read("word-similarity/EN-WS-353-ALL.txt.xz")]
    print(f"{'model':10} {'gensim':>7} {'zoo':>7}  pairs")
    for kind in RATES:
        values = {}
        for fit in (train_gensim, train_zoo):
            results = [spearman(fit(texts, kind, threads, seed), pairs) for seed in SEEDS]
            values[fit] = np.mean([value for value, _ in results])
        count = results[0][1]
        row = f"{kind:10} {values[train_gensim]:7.3f} {values[train_zoo]:7.3f}"
        print(f"{row}  {count} of {len(pairs)}", flush=True)


if __name__ == "__main__":
    main()
