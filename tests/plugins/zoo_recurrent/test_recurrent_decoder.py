"""Behaviour that the recurrent decoders share."""

import pytest
import torch

from zoo import recording
from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_luong.general import General
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_tokens.token import Token

DECODERS = pytest.mark.parametrize("cls", [PlainRNN, AttentiveRNN, LuongRNN], ids=lambda c: c.name)
ATTENTIONAL = pytest.mark.parametrize("cls", [AttentiveRNN, LuongRNN], ids=lambda c: c.name)


def build(cls, **params):
    torch.manual_seed(0)
    if cls is not PlainRNN:
        attention = Blueprint.of(Attention, scorer=Blueprint.of(General), align=Blueprint.of(Soft))
        params["attention"] = attention
    token = Token(vocab=7, dim=3)
    blueprint = Blueprint.of(cls, hidden=4, **params)
    return blueprint.build(embedding=token, memory_dim=4, summary_dim=5, carry={}).double()


@DECODERS
def test_a_step_does_not_modify_its_state(cls, tokens, make_memory):
    decoder = build(cls, cell="lstm", layers=2)
    state = decoder.start(make_memory(), steps=2)
    before = {key: value.clone() for key, value in state.per_hypothesis.items()}

    first, _ = decoder.step(tokens[:, :1], state)
    second, _ = decoder.step(tokens[:, :1], state)

    assert torch.equal(first, second)
    assert list(before) == list(state.per_hypothesis)
    for key, value in state.per_hypothesis.items():
        assert torch.equal(value, before[key])


@DECODERS
def test_hooks_on_every_submodule_run(cls, tokens, make_memory):
    decoder, calls = build(cls, layers=2), set()
    for name, module in decoder.named_modules():
        module.register_forward_hook(lambda *_, name=name: calls.add(name))

    decoder(tokens, make_memory())

    containers = {"cells.cells", "attention.scorers.scorers"}
    assert calls >= {name for name, _ in decoder.named_modules()} - containers


@ATTENTIONAL
def test_an_empty_source_gives_finite_logits_and_gradients(cls, tokens, make_memory):
    decoder, source = build(cls), make_memory()
    states = source.states.requires_grad_()

    logits = decoder(tokens, source)
    logits.square().sum().backward()

    assert logits.isfinite().all()
    assert states.grad.isfinite().all()
    assert torch.count_nonzero(states.grad[~source.mask]) == 0
    # Valid positions affect the logits of every item that has one.
    assert states.grad[source.mask].abs().sum(dim=-1).all()


@ATTENTIONAL
def test_each_step_records_weights_over_the_valid_positions(cls, tokens, make_memory):
    decoder, source = build(cls), make_memory()

    with recording(decoder) as log:
        decoder(tokens, source)

    assert list(log) == ["attention"]
    assert len(log["attention"]) == 5
    for weights in log["attention"]:
        assert weights.shape == (4, 1, 1, 4)
        assert torch.equal(weights[:, 0, 0] > 0, source.mask)
