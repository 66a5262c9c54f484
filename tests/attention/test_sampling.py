"""What attentions drew, told to whom asks."""

import pytest
import torch
from torch import nn

import zoo
from zoo import record_samples
from zoo.plugin import Attention, Blueprint, Samples, find_stochastic
from zoo_alignment.hard import Hard
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive


def build(align=None, heads: int = 1) -> Attention:
    torch.manual_seed(0)
    return Attention(
        query_dim=4,
        key_dim=4,
        scorer=Blueprint.of(Additive, hidden=3),
        align=align or Blueprint.of(Hard),
        heads=heads,
    )


def test_a_log_holds_the_choices_of_every_call_by_name():
    model = nn.ModuleDict({"first": build(heads=2), "soft": build(Blueprint.of(Soft))})
    query, memory = torch.randn(3, 5, 4), torch.randn(3, 6, 4)

    with record_samples(model) as log:
        for attention in model.values():
            attention(query, memory)
        model["first"](query[:, :1], memory)

    assert {k: [tuple(c.logprob.shape) for c in v] for k, v in log.calls.items()} == {
        "first": [(3, 2, 5), (3, 2, 1)]
    }
    assert all(c.logprob.requires_grad and c.entropy.requires_grad for c in log.calls["first"])
    total = log.total()
    assert total.logprob.shape == total.entropy.shape == (3, 6)
    expected = torch.cat([c.logprob for c in log.calls["first"]], dim=2).sum(dim=1)
    torch.testing.assert_close(total.logprob, expected)


def test_attentions_add_up():
    model = nn.ModuleList([build(), build(heads=2)])
    query, memory = torch.randn(3, 5, 4), torch.randn(3, 6, 4)

    with record_samples(model) as log:
        for attention in model:
            attention(query, memory)

    parts = [c.entropy.sum(dim=1) for calls in log.calls.values() for c in calls]
    torch.testing.assert_close(log.total().entropy, parts[0] + parts[1])


def test_a_choice_is_that_of_the_weights_used():
    attention = build(heads=2).train()
    query, memory = torch.randn(3, 5, 4), torch.randn(3, 6, 4)

    with record_samples(attention) as log, zoo.recording(attention) as looks:
        attention(query, memory)

    with zoo.recording(attention) as soft:
        attention.align = Soft()
        attention(query, memory)
    chance = (soft[""][0] * looks[""][0]).sum(dim=-1)
    torch.testing.assert_close(log.calls[""][0].logprob.exp(), chance)


def test_nothing_is_kept_outside_the_block_or_after_a_failure():
    attention = build()
    with pytest.raises(RuntimeError), record_samples(attention):
        attention(torch.randn(1, 3, 4), torch.randn(1, 3, 7))

    assert not attention.listeners
    with record_samples(build(Blueprint.of(Soft))) as log:
        pass
    assert log.total() is None


def test_who_draws():
    assert isinstance(find_stochastic(nn.Sequential(build())), Hard)
    assert find_stochastic(build(Blueprint.of(Soft))) is None
    assert find_stochastic(build(Blueprint.of(Hard, straight_through=True))) is None


def compose(align: str) -> zoo.Model:
    return zoo.compose("bahdanau-reversal", overrides=[f"model.decoder.attention.align={align}"])


def test_a_model_that_draws_tells_its_choices_step_by_step():
    model = compose("hard").train()
    batch = model.example(3, 4, torch.Generator().manual_seed(0))

    outputs = model(batch)

    assert isinstance(outputs.samples, Samples)
    assert outputs.samples.logprob.shape == outputs.targets.shape
    assert (outputs.samples.logprob < 0).all()
    assert compose("soft")(batch).samples is None
    assert compose("{type: hard, straight_through: true}")(batch).samples is None


def test_reinforce_lets_every_weight_of_a_drawing_model_learn():
    model = compose("hard").train()
    objective = zoo.load_spec("bahdanau-reversal", overrides=["objective=reinforce"])
    objective = objective.sections.objective.build().train()

    objective(model(model.example(3, 4, torch.Generator().manual_seed(0)))).backward()

    dead = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not dead


def test_a_drawing_model_compiles_whole():
    model = compose("hard").eval()
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)(batch)

    torch.testing.assert_close(compiled.logits, model(batch).logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        compiled.samples.logprob, model(batch).samples.logprob, rtol=0, atol=1e-5
    )
