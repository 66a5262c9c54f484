"""The laws of embeddings."""

from __future__ import annotations

from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.tensors import seeded, untouched
from zoo.testing.subject import Subject


def declared_width(subject: Subject) -> None:
    """An example of B items and S positions becomes vectors [B, S, dim], none of them masked."""
    embedding = subject.part()
    inputs = embedding.example(2, 3, seeded(0))
    assert embedding(inputs).shape == (2, 3, embedding.dim), "vectors are not [B, S, dim]"
    assert embedding.mask(inputs).all(), "the example has masked positions"


def inert_padding(subject: Subject) -> None:
    """A padded position is masked, its vector is zero, and it changes no other vector."""
    embedding = subject.part()
    if embedding.padding is None:
        raise NotApplicable("it has no padding symbol")
    inputs = embedding.example(2, 4, seeded(0))
    padded = inputs.clone()
    padded[0, 2:] = embedding.padding
    vectors, before = embedding(padded), embedding(inputs)
    assert not embedding.mask(padded)[0, 2:].any(), "padding is not masked"
    assert (vectors[0, 2:] == 0).all(), "the vector of a padded position is not zero"
    untouched(vectors[0, :2], before[0, :2], "a vector before the padding")
    untouched(vectors[1], before[1], "a vector of another item")


LAWS = (Law("declared-width", declared_width), Law("inert-padding", inert_padding))
