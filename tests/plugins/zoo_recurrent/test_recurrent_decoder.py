"""What the recurrent decoders share, with every scorer and cell."""

import pytest
import torch

from zoo import recording
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_tokens.token import Token
from zoo_transformer.scaled_dot import ScaledDot

SCORERS = {
    "dot": Blueprint.of(Dot),
    "general": Blueprint.of(General),
    "concat": Blueprint.of(Concat, hidden=3),
    "additive": Blueprint.of(Additive, hidden=3),
    "scaled-dot": Blueprint.of(ScaledDot),
}
TOKENS = torch.tensor([[1, 4, 2, 6, 3], [5, 5, 1, 2, 0], [3, 6, 4, 1, 1], [2, 2, 5, 6, 4]])
DECODERS = pytest.mark.parametrize("cls", [PlainRNN, AttentiveRNN, LuongRNN], ids=lambda c: c.name)
ATTENTIONAL = pytest.mark.parametrize("cls", [AttentiveRNN, LuongRNN], ids=lambda c: c.name)


def build(cls, scorer="general", **params):
    torch.manual_seed(0)
    if cls is not PlainRNN:
        attention = Blueprint.of(Attention, scorer=SCORERS[scorer], align=Blueprint.of(Soft))
        params |= {"attention": attention, "memory_dim": 4}
    return cls(embedding=Token(vocab=7, dim=3), summary_dim=5, carry={}, hidden=4, **params)


def memory() -> Memory:
    """Return a memory of four items, one of them of length 1 and one empty."""
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(4)[None] < torch.tensor([4, 1, 2, 0])[:, None]
    return Memory(
        torch.randn(4, 4, 4, generator=generator), mask, torch.randn(4, 5, generator=generator)
    )


@DECODERS
def test_a_step_does_not_modify_its_state(cls):
    decoder = build(cls, cell="lstm", layers=2)
    state = decoder.start(memory(), steps=2)
    before = {key: value.clone() for key, value in state.per_hypothesis.items()}

    first, _ = decoder.step(TOKENS[:, :1], state)
    second, _ = decoder.step(TOKENS[:, :1], state)

    assert torch.equal(first, second)
    assert list(before) == list(state.per_hypothesis)
    for key, value in state.per_hypothesis.items():
        assert torch.equal(value, before[key])


@DECODERS
def test_hooks_on_every_submodule_run(cls):
    decoder, calls = build(cls, layers=2), set()
    for name, module in decoder.named_modules():
        module.register_forward_hook(lambda *_, name=name: calls.add(name))

    decoder(TOKENS, memory())

    containers = {"cells.cells", "attention.scorers.scorers"}
    assert calls >= {name for name, _ in decoder.named_modules()} - containers


@ATTENTIONAL
@pytest.mark.parametrize("scorer", SCORERS)
def test_an_empty_source_gives_finite_logits_and_gradients(cls, scorer):
    decoder, source = build(cls, scorer), memory()
    states = source.states.requires_grad_()

    logits = decoder(TOKENS, source)
    logits.square().sum().backward()

    assert logits.isfinite().all()
    assert states.grad.isfinite().all()
    assert torch.count_nonzero(states.grad[~source.mask]) == 0
    # Valid positions affect the logits of every item that has one.
    assert states.grad[source.mask].abs().sum(dim=-1).all()


@ATTENTIONAL
def test_each_step_records_weights_over_the_valid_positions(cls):
    decoder, source = build(cls), memory()

    with recording(decoder) as log:
        decoder(TOKENS, source)

    assert list(log) == ["attention"]
    assert len(log["attention"]) == 5
    for weights in log["attention"]:
        assert weights.shape == (4, 1, 1, 4)
        assert torch.equal(weights[:, 0, 0] > 0, source.mask)
