from functools import partial

import pytest
import torch
from attention_kit import build, lengths_mask, randn
from thread_kit import run_in_threads
from torch import nn

from zoo import record_samples, recording
from zoo.attention.recorder import Recorder, attach
from zoo.plugin import Blueprint, Mask, RecordsAttention, Samples
from zoo_alignment.hard import Hard


def test_recording_stores_the_weights_of_each_call_by_module_name():
    model = nn.ModuleDict(
        {"first": build("additive", heads=3, project="none"), "second": build("dot")}
    )
    query, memory = randn(2, 4, 6), randn(2, 5, 6, seed=2)
    keys = lengths_mask(5, 2, S=5)

    with recording(model) as log:
        model["first"](query, memory, Mask(keys=keys))
        model["first"](query[:, :1], memory, Mask(keys=keys))
        model["second"](query, memory)

    assert {name: [tuple(w.shape) for w in calls] for name, calls in log.items()} == {
        "first": [(2, 3, 4, 5), (2, 3, 1, 5)],
        "second": [(2, 1, 4, 5)],
    }
    for weights in log["first"]:
        assert torch.equal(weights > 0, keys[:, None, None].expand_as(weights))
        torch.testing.assert_close(
            weights.sum(dim=-1), torch.ones(weights.shape[:3]), rtol=0, atol=1e-6
        )
    # Each head has its own scorer.
    assert not torch.allclose(log["first"][0][:, 0], log["first"][0][:, 1])


def test_threads_record_only_their_own_calls():
    attention = build("additive", heads=2)

    def record(items):
        query, memory = randn(items, 4, 6, seed=items), randn(items, 5, 6, seed=2)
        with recording(attention) as log:
            attention(query, memory)
        return log[""]

    calls = [partial(record, items) for items in (1, 2, 3, 4)]
    expected = [call() for call in calls]
    for results, [weights] in zip(run_in_threads(calls, times=50), expected, strict=True):
        for [found] in results:
            assert torch.equal(found, weights)


def test_recording_detaches_its_recorders():
    attention = build(heads=2)
    states = randn(1, 3, 6).requires_grad_()
    names = list(attention.state_dict())

    with recording(attention) as log:
        attention(states, states)
    attention(states, states)

    assert not attention.recorders
    assert len(log[""]) == 1
    assert not log[""][0].requires_grad
    assert list(attention.state_dict()) == names


def test_nested_recordings_are_independent():
    attention = build("dot")
    states = randn(1, 3, 6).requires_grad_()

    with recording(attention) as outer:
        with recording(attention, gradients=True) as inner:
            attention(states, states)
        attention(states, states)

    assert [len(outer[""]), len(inner[""])] == [2, 1]
    torch.testing.assert_close(inner[""][0], outer[""][0], rtol=0, atol=0)
    inner[""][0].square().sum().backward()
    assert states.grad.abs().sum() > 0
    assert not attention.recorders


def test_recording_ends_on_an_exception():
    attention = build()

    with pytest.raises(RuntimeError), recording(attention):
        attention(randn(1, 3, 6), randn(1, 3, 7))

    assert not attention.recorders


def test_context_is_the_memory_weighted_by_recorded_weights():
    attention = build("additive")
    query, memory = randn(2, 4, 6), randn(2, 5, 6, seed=2)

    with recording(attention) as log:
        context = attention(query, memory).context

    torch.testing.assert_close(log[""][0][:, 0] @ memory, context, rtol=0, atol=1e-6)


def test_samples_can_be_recorded_inside_a_recording():
    attention = build("additive", align=Blueprint.of(Hard)).train()
    query, memory = randn(2, 4, 6), randn(2, 5, 6, seed=2)

    with recording(attention) as weights:
        with record_samples(attention) as samples:
            attention(query, memory)
        attention(query, memory)

    assert (len(weights[""]), len(samples.calls[""])) == (2, 1)
    assert not attention.recorders


def test_a_recorder_receives_only_what_it_needs():
    module = RecordsAttention()
    weights, samples = torch.ones(1, 1, 2, 3), Samples(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))
    received_weights, received_samples = [], []

    with attach({module: Recorder(weights=received_weights.append)}):
        assert not module.is_recording_samples
        module.record(weights, samples)
    with attach({module: Recorder(samples=received_samples.append)}):
        assert module.is_recording_samples
        module.record(weights)
        module.record(weights, samples)

    assert not module.is_recording_samples
    assert received_weights == [weights]
    assert received_samples == [samples]


def test_equal_recorders_are_detached_separately():
    module, received = RecordsAttention(), []
    with attach({module: Recorder(weights=received.append)}):
        with attach({module: Recorder(weights=received.append)}):
            module.record(torch.zeros(1))
        module.record(torch.zeros(1))
    assert len(received) == 3
