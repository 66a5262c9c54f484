"""Fixtures for tests of word2vec."""

import numpy as np
import pytest

import zoo
from zoo_word2vec import Vectors


@pytest.fixture
def vectors():
    """Six words with vectors of size 5."""
    words = ["king", "queen", "man", "woman", "Köln", "naïve"]
    return Vectors(words, np.random.default_rng(0).normal(size=(6, 5)))


@pytest.fixture
def compose_model():
    """A function that composes a small model of the given type."""

    def compose(kind, negatives=2, vocab=6, **token):
        source = {"type": "token", "vocab": vocab, "dim": 4, **token}
        spec = {"zoo": 1, "name": "w", "model": {"type": kind, "source": source}}
        return zoo.compose(spec, overrides=[f"model.negatives={negatives}"])

    return compose
