"""Logits of a tied output layer with packed weights."""

import copy

import pytest
import torch

import zoo
from zoo_fast.device import packed_linear
from zoo_fast.device.packed_linear import PackedWeights
from zoo_tokens.token import Token


@pytest.fixture(autouse=True)
def mkldnn(monkeypatch):
    monkeypatch.setattr(packed_linear, "SMALLEST", 1)
    before = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(True)
    yield
    torch._C._set_mkldnn_enabled(before)


@pytest.mark.parametrize("options", [{}, {"inner_dim": 3}], ids=["plain", "mapped"])
@torch.no_grad()
def test_logits_equal_those_of_the_reference(options):
    torch.manual_seed(0)
    embedding = Token(vocab=11, dim=4, **options)
    fast, packed, states = zoo.accelerate(copy.deepcopy(embedding)), PackedWeights(), None
    for _ in range(3):
        states = torch.randn(2, 3, 4)
        with packed.use():
            found = fast.unembed(states)
        torch.testing.assert_close(found, embedding.unembed(states))
    assert packed._groups
