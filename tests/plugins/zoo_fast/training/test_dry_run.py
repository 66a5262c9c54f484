"""The dry run accepts what the shipped models accept, also if they are accelerated."""

import pytest
import torch

import zoo
from zoo_fast.training.dry_run import accepts_batch

NAMES = [
    "bert-tiny",
    "gpt2-tiny",
    "llama-tiny",
    "memory-network-tiny",
    "transformer-tiny",
    "g2p-en",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_batch_is_accepted(name):
    model = zoo.accelerate(zoo.compose(name))

    assert accepts_batch(model, model.example(2, 5, torch.Generator().manual_seed(0)))


def test_a_batch_longer_than_the_positions_is_rejected():
    model = zoo.compose("bert-tiny")
    length = model.encoder.position.max_positions

    assert accepts_batch(model, model.example(1, length))
    assert not accepts_batch(model, model.example(1, length + 1))
