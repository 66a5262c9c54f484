"""Queries on word vectors compared with gensim, and vectors in models."""

import doctest

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors

import zoo
from zoo import ZooError
from zoo_word2vec import Vectors, vectors as vectors_module


def test_queries_match_gensim(vectors):
    theirs = KeyedVectors(5)
    theirs.add_vectors(vectors.words, vectors.matrix)
    assert vectors.similarity("king", "Köln") == pytest.approx(theirs.similarity("king", "Köln"))
    for ours, expected in (
        (vectors.most_similar("man", 3), theirs.most_similar("man", topn=3)),
        (
            vectors.analogy("man", "king", "woman", 3),
            theirs.most_similar(positive=["king", "woman"], negative=["man"], topn=3),
        ),
    ):
        assert [word for word, _ in ours] == [word for word, _ in expected]
        np.testing.assert_allclose([s for _, s in ours], [s for _, s in expected], rtol=1e-5)


def test_invalid_vectors_and_queries_are_rejected(vectors, tmp_path):
    with pytest.raises(ZooError, match="words is empty"):
        Vectors([], np.zeros((0, 3)))
    with pytest.raises(ZooError, match="'a' is in rows 0 and 1"):
        Vectors(["a", "a"], np.zeros((2, 3)))
    with pytest.raises(ZooError, match=r"\[3, 3\].*\[2, D\]"):
        Vectors(["a", "b"], np.zeros((3, 3)))
    with pytest.raises(ZooError, match=r"'KÖLN'.* 6 words; did you mean 'Köln'"):
        vectors.most_similar("KÖLN")
    with pytest.raises(ZooError, match="no vector format named 'w2v'"):
        vectors.write(tmp_path / "v", "w2v")
    with pytest.raises(ZooError, match=r"'a b'.*white space"):
        Vectors(["a b"], np.zeros((1, 2))).write(tmp_path / "v")
    with pytest.raises(ZooError, match="cannot be read: no such file"):
        Vectors.read(tmp_path / "absent")


def test_copy_into_an_embedding(vectors):
    spec = "gru-lm"
    changes = ["model.embedding={vocab: 5, dim: 5}", "model.decoder.hidden=4"]
    model = zoo.compose(spec, overrides=changes)
    table = model.embedding.table.weight
    before = table.clone()
    assert vectors.copy_into(table, [None, "queen", "unknown", "king", "man"]) == 3
    assert torch.equal(table[1].detach(), torch.from_numpy(vectors["queen"]))
    assert torch.equal(table[[0, 2]], before[[0, 2]])
    assert table.requires_grad
    with pytest.raises(ZooError, match=r"\[5, 5\].*\[2, 5\]"):
        vectors.copy_into(table, ["king", "queen"])


def test_the_examples_in_docstrings_run():
    result = doctest.testmod(vectors_module)
    assert result.attempted > 0
    assert result.failed == 0
