"""The padding row of a table that is tied to the output layer stays zero in training."""

from functools import partial

import pytest
import torch
from torch import nn

import zoo
from zoo.interfaces.embedding import tied_logits
from zoo_tokens.token import Token

# Every model of the zoo with a tied output: spec and overrides.
TIED = {
    "seq2seq": ("transformer-tiny", []),
    "language-model": ("gpt2-tiny", ["model.embedding.padding=0"]),
    "masked-lm": ("bert-tiny", []),
    "memory-network": ("memory-network-tiny", []),
}
OPTIMISERS = {
    "SGD": partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": partial(torch.optim.Adam, lr=0.1, weight_decay=0.1),
    "AdamW": partial(torch.optim.AdamW, lr=0.1, weight_decay=0.1),
}


def tokens_of(model: nn.Module) -> list[Token]:
    return [module for module in model.modules() if isinstance(module, Token)]


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("name", TIED)
def test_the_padding_row_stays_zero(name, optimiser):
    spec, overrides = TIED[name]
    model, objective = zoo.compose(spec, overrides=overrides), zoo.objective(spec)
    batch = model.example(4, 5, torch.Generator().manual_seed(0))
    if "target" not in batch:
        batch["target"] = batch["source"]
    before = [token.table.weight.detach().clone() for token in tokens_of(model)]
    steps = OPTIMISERS[optimiser](model.parameters())

    for _ in range(4):
        steps.zero_grad()
        objective(model(batch)).backward()
        steps.step()

    assert before
    for token, initial in zip(tokens_of(model), before, strict=True):
        trained = token.table.weight != initial
        assert torch.count_nonzero(token.table.weight[token.padding]) == 0
        assert trained.any(dim=1).sum() == token.vocab - 1


def test_logits_and_other_gradients_are_those_of_a_matrix_product():
    torch.manual_seed(0)
    table = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    states = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(2, 4, 5, dtype=torch.float64)

    logits = tied_logits(states, table, padding=2)
    of_states, of_table = torch.autograd.grad(logits, (states, table), upstream)

    product = states @ table.T
    expected_states, expected_table = torch.autograd.grad(product, (states, table), upstream)
    expected_table[2] = 0
    assert torch.equal(logits, product)
    torch.testing.assert_close(of_states, expected_states)
    torch.testing.assert_close(of_table, expected_table)


def test_the_gradient_supports_vmap():
    table = torch.randn(4, 3, requires_grad=True)

    def loss(table, state):
        return tied_logits(state, table, padding=0).square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(table, torch.ones(2, 3))

    assert torch.count_nonzero(per_sample[:, 0]) == 0
    assert torch.count_nonzero(per_sample[:, 1:]) == 2 * 3 * 3
