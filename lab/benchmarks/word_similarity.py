"""Word vectors of skip-gram and CBOW against gensim: rank correlation with WS-353.

    python lab/benchmarks/word_similarity.py [THREADS]

Trains on WikiText-2 with the same hyperparameters on both sides, dim 100, 5 epochs; prints the mean
over three seeds. Needs the data sets `wikitext2` and `word-similarity` (ZOO_DATA).
"""

import os
import sys
from pathlib import Path

import numpy as np
import torch

from zoo.plugin import ProgramRun
from zoo_word2vec.similarity_program import RATES, SimilarityProgram

DATA = Path(os.environ.get("ZOO_DATA", "data"))
SET = "EN-WS-353-ALL"
SEEDS = (1, 2, 3)


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    print(f"{'model':10} {'gensim':>7} {'zoo':>7}  pairs")
    for kind in RATES:
        program = SimilarityProgram(
            corpus=str(DATA / "wikitext2" / "wiki.train.tokens.xz"),
            sets=[str(DATA / "word-similarity" / f"{SET}.txt.xz")],
            model=kind,
            threads=threads,
        )
        runs = [ProgramRun(Path(), None, torch.device("cpu"), seed) for seed in SEEDS]
        results = [program.run(run) for run in runs]
        means = [np.mean([r[f"{side}/{SET}"] for r in results]) for side in ("gensim", "zoo")]
        pairs = int(results[0][f"pairs/{SET}"])
        print(f"{kind:10} {means[0]:7.3f} {means[1]:7.3f}  {pairs}", flush=True)


if __name__ == "__main__":
    main()
