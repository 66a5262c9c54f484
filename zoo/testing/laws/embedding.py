"""Laws of embeddings."""

from __future__ import annotations

import torch

from zoo.errors import ZooError
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.autocast import EMBEDDING_LAWS as AUTOCAST_LAWS
from zoo.testing.laws.batches import EMBEDDING_LAWS as BATCH_LAWS
from zoo.testing.laws.helpers import assert_equal, make_generator, randn


def output_shape(config: Configuration) -> None:
    """An example with B items and S positions gives vectors [B, S, dim], none of them masked."""
    embedding = config.build()
    inputs = embedding.example(2, 3, make_generator(0))
    assert embedding(inputs).shape == (2, 3, embedding.dim), "vectors are not [B, S, dim]"
    assert embedding.mask(inputs).all(), "the example has masked positions"


def inert_padding(config: Configuration) -> None:
    """A padded position is masked, its vector is zero unless it is trained, and other vectors do
    not change. Padding that ends every text is masked from the second one on."""
    embedding = config.build()
    if embedding.padding is None:
        raise NotApplicable("it has no padding token")
    inputs = embedding.example(2, 4, make_generator(0))
    padded = inputs.clone()
    padded[0, 2:] = embedding.padding
    vectors, before = embedding(padded), embedding(inputs)
    ends = embedding.input_schema().suffix.count(embedding.padding)
    assert not embedding.mask(padded)[0, 2 + ends :].any(), "padding is not masked"
    zero = embedding.train_padding or (vectors[0, 2:] == 0).all()
    assert zero, "the vector of a padded position is not zero"
    assert_equal(vectors[0, :2], before[0, :2], "a vector before the padding")
    assert_equal(vectors[1], before[1], "a vector of another item")


def tied_padding(config: Configuration) -> None:
    """The vector of padding is still zero after a training step of a tied output layer."""
    embedding = config.build()
    if embedding.padding is None:
        raise NotApplicable("it has no padding token")
    if embedding.train_padding:
        raise NotApplicable("the vector of padding is trained")
    try:
        logits = embedding.unembed(randn(2, 3, embedding.dim))
    except ZooError as error:
        raise NotApplicable(str(error)) from None
    padded = torch.full_like(embedding.example(1, 2, make_generator(0)), embedding.padding)
    optimiser = torch.optim.SGD(embedding.parameters(), lr=1.0, momentum=0.9, weight_decay=0.1)
    logits.logsumexp(dim=-1).sum().backward()
    optimiser.step()
    assert (embedding(padded) == 0).all(), "the tied output layer trains the vector of padding"


LAWS = (
    Law("output-shape", output_shape),
    Law("inert-padding", inert_padding),
    Law("tied-padding", tied_padding),
    *AUTOCAST_LAWS,
    *BATCH_LAWS,
)
