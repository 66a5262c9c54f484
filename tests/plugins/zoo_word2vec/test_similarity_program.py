"""Program 'word-similarity': ranks, and the comparison with gensim."""

import numpy as np
import pytest
import torch

from zoo.plugin import ProgramRun
from zoo_word2vec import Vectors
from zoo_word2vec.similarity_program import SimilarityProgram, correlation, mean_ranks


def test_ties_have_the_mean_rank():
    assert mean_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]


def test_the_correlation_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    vectors = Vectors(list("abcde"), np.random.default_rng(0).normal(size=(5, 3)))
    pairs = [("a", "b", "1"), ("a", "c", "2"), ("b", "d", "2"), ("c", "e", "5"), ("a", "x", "9")]
    ours = [vectors.similarity(a, b) for a, b, _ in pairs[:4]]
    expected = stats.spearmanr(ours, [1, 2, 2, 5]).statistic
    assert correlation(vectors, pairs) == (pytest.approx(expected), 4)


def test_the_program_compares_with_gensim(tmp_path):
    pytest.importorskip("gensim")
    (tmp_path / "text.txt").write_text("A b c a\nb c d a\n" * 20)
    (tmp_path / "PAIRS.txt").write_text("a b 1\nc d 2\na d 3\nx y 1\n")
    files = {"corpus": str(tmp_path / "text.txt"), "sets": [str(tmp_path / "PAIRS.txt")]}
    run = ProgramRun(tmp_path, None, torch.device("cpu"), 1)
    values = SimilarityProgram(**files, dim=4, epochs=1).run(run)
    assert values["pairs/PAIRS"] == 3
    difference = values["zoo/PAIRS"] - values["gensim/PAIRS"]
    assert values["difference/PAIRS"] == pytest.approx(difference)
