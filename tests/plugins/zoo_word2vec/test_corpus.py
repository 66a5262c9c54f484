"""Corpora: vocabulary, counts, subsampling and the noise distribution."""

import pytest
import torch

from zoo import ZooError
from zoo_word2vec.corpus import PADDING, Corpus

TEXT = [["a", "b", "a", "c"], ["b", "d", "a"], ["e"]]


def test_corpus_counts_and_sorts_words():
    corpus = Corpus.from_sentences(TEXT, min_count=2)
    assert list(corpus.words) == [PADDING, "a", "b"]
    assert corpus.counts.tolist() == [0, 3, 2]
    assert corpus.ids.tolist() == [1, 2, 1, 2, 1]
    assert corpus.sentences.tolist() == [0, 0, 0, 1, 1]
    share = 3**0.75 / (3**0.75 + 2**0.75)
    torch.testing.assert_close(corpus.noise_cdf(), torch.tensor([0, share, 1], dtype=torch.float64))


def test_subsampling_keeps_the_documented_fraction():
    corpus = Corpus.from_sentences([["the"] * 9000 + ["cat"] * 1000], min_count=1)
    ids, _ = corpus.subsample(0.01, torch.Generator().manual_seed(0))
    fractions = [(ids == word).sum().item() / n for word, n in ((1, 9000), (2, 1000))]
    for fraction, f in zip(fractions, (0.9, 0.1), strict=True):
        expected = (0.01 / f) ** 0.5 + 0.01 / f
        assert fraction == pytest.approx(expected, abs=4 * (expected / 1000) ** 0.5)
    assert corpus.subsample(0.0, torch.Generator())[0] is corpus.ids


def test_invalid_corpora_are_rejected():
    with pytest.raises(ZooError, match=r"none of 5 words.*9 times"):
        Corpus.from_sentences(TEXT, min_count=9)
    with pytest.raises(ZooError, match="none of 0 words"):
        Corpus.from_sentences([])
    with pytest.raises(ZooError, match="'<pad>' is reserved"):
        Corpus.from_sentences([["<pad>"]])
    with pytest.raises(ZooError, match="string 'a cat'"):
        Corpus.from_sentences(["a cat"])
