"""Padded lengths: few shapes, the same outputs, and never longer than the model accepts."""

from typing import ClassVar

import pytest
import torch
from torch import nn

import zoo
from zoo.registry.component_registry import default_registry
from zoo.training.local_step import LossModule
from zoo_fast.training.length_padding import LengthPadding, max_positions
from zoo_tokens.token import Token

LENGTH = 10
LEARNED = {"position": {"type": "learned", "length": LENGTH}}


def build(name="transformer-tiny", **model):
    torch.manual_seed(0)
    spec = {"zoo": 1, "name": "padded", "extends": name, "model": model}
    return zoo.compose(spec).eval()


def make_batch(model, length):
    batch = model.example(2, length, torch.Generator().manual_seed(0))
    batch["target"] = batch["target"][:, : length + 1]  # as many inputs as source tokens
    return batch


def shapes(batch):
    return {key: tuple(tensor.shape) for key, tensor in batch.items()}


def test_padded_lengths_have_the_same_loss():
    model = build()
    module = LossModule(model, zoo.objective("transformer-tiny"))
    batch = model.example(3, 5, torch.Generator().manual_seed(0))
    padded = LengthPadding(model)(batch)
    assert padded["source"].shape == (3, 8)
    assert padded["target"].shape == (3, 9)  # bos and 8 tokens
    assert torch.equal(padded["target"][:, : batch["target"].shape[1]], batch["target"])
    torch.testing.assert_close(module(padded), module(batch))


def test_lengths_that_need_no_padding_are_kept():
    model = build()
    padding = LengthPadding(model)
    batch = padding(model.example(2, 5))
    assert padding(batch) is batch


def test_blocks_without_a_mask_are_not_padded():
    model = zoo.compose("gpt2-tiny")
    batch = model.example(2, 5)
    assert "mask" in model.batch_schema()
    assert LengthPadding(model)(batch) is batch


@pytest.mark.parametrize("length", range(1, LENGTH + 1))
def test_padding_is_not_longer_than_the_learned_positions(length):
    model = build(encoder=LEARNED, decoder=LEARNED)
    assert max_positions(model) == LENGTH
    batch = make_batch(model, length)

    padded = LengthPadding(model)(batch)

    expected = 8 if length <= 8 else LENGTH
    assert shapes(padded) == {"source": (2, expected), "target": (2, expected + 1)}
    actual, logits = model(padded).logits, model(batch).logits
    torch.testing.assert_close(actual[:, : logits.shape[1]], logits)


class LimitedTokens(Token):
    """Token embedding that rejects long sequences in a way that nothing declares."""

    name: ClassVar[str] = "limited-tokens"

    def forward(self, inputs):
        if inputs.shape[1] > LENGTH:
            raise RuntimeError("too long")
        return super().forward(inputs)


class PositionedTokens(Token):
    """Token embedding with a table of positions that it does not declare."""

    name: ClassVar[str] = "positioned-tokens"

    def __init__(self, *, vocab: int, dim: int, padding: int = 0) -> None:
        super().__init__(vocab=vocab, dim=dim, padding=padding)
        self.positions = nn.Embedding(LENGTH, dim)

    def forward(self, inputs):
        index = torch.arange(inputs.shape[1], device=inputs.device)
        return super().forward(inputs) + self.positions(index)


@pytest.mark.parametrize("embedding", [LimitedTokens, PositionedTokens])
@pytest.mark.parametrize("length", [9, LENGTH])
def test_an_undeclared_limit_is_not_exceeded(embedding, length):
    registry = default_registry().with_components([embedding], plugin="limited")
    source = {"type": embedding.name, "vocab": 24, "dim": 16}
    spec = {"zoo": 1, "name": "limited", "extends": "transformer-tiny", "model": {"source": source}}
    model = zoo.compose(spec, registry=registry)
    batch = make_batch(model, length)

    padded = LengthPadding(model)(batch)

    assert shapes(padded) == shapes(batch)
    model(padded)


def test_the_random_state_and_the_weights_are_kept():
    model = build().train()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()

    LengthPadding(model)(model.example(2, 5, torch.Generator().manual_seed(0)))

    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
