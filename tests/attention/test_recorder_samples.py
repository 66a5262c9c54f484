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


def test_samples_of_each_call_are_stored_by_module_name():
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


def test_total_sums_over_attentions():
    model = nn.ModuleList([build(), build(heads=2)])
    query, memory = torch.randn(3, 5, 4), torch.randn(3, 6, 4)

    with record_samples(model) as log:
        for attention in model:
            attention(query, memory)

    parts = [c.entropy.sum(dim=1) for calls in log.calls.values() for c in calls]
    torch.testing.assert_close(log.total().entropy, parts[0] + parts[1])


def test_logprob_is_that_of_the_sampled_position():
    attention = build(heads=2).train()
    query, memory = torch.randn(3, 5, 4), torch.randn(3, 6, 4)

    with record_samples(attention) as log, zoo.recording(attention) as hard:
        attention(query, memory)

    with zoo.recording(attention) as soft:
        attention.align = Soft()
        attention(query, memory)
    probability = (soft[""][0] * hard[""][0]).sum(dim=-1)
    torch.testing.assert_close(log.calls[""][0].logprob.exp(), probability)


def test_recorders_are_detached_after_an_exception():
    attention = build()
    with pytest.raises(RuntimeError), record_samples(attention):
        attention(torch.randn(1, 3, 4), torch.randn(1, 3, 7))

    assert not attention.recorders


def test_total_is_none_without_samples():
    with record_samples(build(Blueprint.of(Soft))) as log:
        pass
    assert log.total() is None


def test_find_stochastic_returns_the_alignment():
    assert isinstance(find_stochastic(nn.Sequential(build())), Hard)
    assert find_stochastic(build(Blueprint.of(Soft))) is None
    assert find_stochastic(build(Blueprint.of(Hard, straight_through=True))) is None


def compose(align: str) -> zoo.Model:
    overrides = [f"model.decoder.attention.align={align}", "objective=reinforce"]
    return zoo.compose("bahdanau-reversal", overrides=overrides)


def test_outputs_of_a_stochastic_model_have_samples_per_step():
    model = compose("hard").train()
    batch = model.example(3, 4, torch.Generator().manual_seed(0))

    outputs = model(batch)

    assert isinstance(outputs.samples, Samples)
    assert outputs.samples.logprob.shape == outputs.targets.shape
    assert (outputs.samples.logprob < 0).all()
    assert compose("soft")(batch).samples is None
    assert compose("{type: hard, straight_through: true}")(batch).samples is None


def test_reinforce_gives_every_parameter_a_gradient():
    model = compose("hard").train()
    objective = zoo.load_spec("bahdanau-reversal", overrides=["objective=reinforce"])
    objective = objective.sections.objective.build().train()

    objective(model(model.example(3, 4, torch.Generator().manual_seed(0)))).backward()

    missing = [
        n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
    ]
    assert not missing


def test_a_stochastic_model_compiles_without_graph_breaks():
    model = compose("hard").eval()
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)(batch)

    torch.testing.assert_close(compiled.logits, model(batch).logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        compiled.samples.logprob, model(batch).samples.logprob, rtol=0, atol=1e-5
    )
