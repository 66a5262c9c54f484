"""Rows of a table and its gradient in Triton kernels, against torch.nn.Embedding."""

import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo_tokens.token import Token

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    monkeypatch.setattr("zoo_fast.tokens.kernels.lookup._CHUNK", 16)
    monkeypatch.setattr("zoo_fast.tokens.kernels.lookup._ROWS", 8)
    with torch.device(DEVICE):
        yield


@pytest.mark.parametrize("padding", [0, None])
@pytest.mark.parametrize(
    ("vocab", "shape"), [(7, (3, 15)), (100, (2, 5)), (2, (1, 1)), (5, (2, 0))]
)
def test_rows_and_gradient(vocab, shape, padding):
    torch.manual_seed(0)
    embedding = zoo.accelerate(Token(vocab=vocab, dim=6, padding=padding))
    tokens = torch.randint(0, vocab, shape)
    found = embedding(tokens)
    table = embedding.table.weight
    expected = F.embedding(tokens, table, padding_idx=padding)
    assert torch.equal(found, expected)
    upper = torch.randn(found.shape)
    (gradient,) = torch.autograd.grad(found, table, upper)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, table, upper)[0])


def test_sums_are_computed_in_float32():
    embedding = zoo.accelerate(Token(vocab=3, dim=2, padding=None).to(torch.bfloat16))
    tokens = torch.ones(1, 300, dtype=torch.long)
    (gradient,) = torch.autograd.grad(embedding(tokens).sum(), embedding.table.weight)
    assert gradient[1].tolist() == [300.0, 300.0]  # bfloat16 sums stop at 256
    assert not gradient[[0, 2]].any()


def test_hooks_of_the_table_run():
    embedding = zoo.accelerate(Token(vocab=5, dim=2))
    calls = []
    embedding.table.register_forward_hook(lambda *_: calls.append(1))
    embedding(torch.ones(1, 2, dtype=torch.long))
    assert calls == [1]


def test_second_derivatives():
    embedding = zoo.accelerate(Token(vocab=5, dim=2))
    tokens, upper = torch.tensor([[1, 2, 1]]), torch.randn(1, 3, 2, requires_grad=True)
    table = embedding.table.weight
    (first,) = torch.autograd.grad(embedding(tokens), table, upper, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), upper)
    torch.testing.assert_close(second[0, 0], 2 * (upper[0, 0] + upper[0, 2]).detach())
