"""Blocks in evaluation on the CPU against the reference path."""

import copy

import pytest
import torch
from torch import nn

import zoo
from zoo.plugin import Declined
from zoo_fast.transformer.cpu_block import CpuBlock

ATTENTION = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "head_dim": 8}
PARTS = {
    "norms after": {"position": "sinusoidal"},
    "grouped heads, rotary, gate": {
        "position": "rotary",
        "norm": {"kind": "rms", "place": "pre"},
        "attention": {**ATTENTION, "kv_heads": 1, "bias": False},
        "feed_forward": {"hidden": 6, "gated": True, "bias": False, "activation": "silu"},
    },
    "norms of outputs, GELU": {
        "norm": {"place": "output"},
        "feed_forward": {"hidden": 6, "activation": "gelu"},
    },
    "norms on both sides, GELU by tanh": {
        "norm": {"place": "both", "kind": "rms-plus-one"},
        "attention": {**ATTENTION, "norm": {"over": "all"}},
        "feed_forward": {"hidden": 6, "activation": "gelu-tanh"},
    },
    "layer scale, quick GELU": {
        "norm": {"place": "pre"},
        "layer_scale": 0.5,
        "feed_forward": {"hidden": 6, "activation": "quick-gelu"},
    },
    "windows": {"position": "rotary", "pattern": [{"window": 2}, {}]},
    "bias of positions": {"position": {"type": "t5", "buckets": 4, "max_distance": 8}},
}
PARALLEL = {"norm": {"place": "pre"}, "position": "rotary"}


def build(type, parts):
    torch.manual_seed(0)
    stack = {"type": "transformer", "layers": 2, "attention": ATTENTION}
    stack |= {"feed_forward": {"hidden": 6}, **parts}
    embedding = {"type": "token", "vocab": 9, "dim": 16}
    model = {"type": type, "source": embedding, "encoder": stack, "decoder": stack}
    if type == "language-model":
        model = {"type": type, "embedding": embedding, "decoder": stack, "bos": 1}
    composed = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()
    for parameter in composed.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return composed


@pytest.fixture
def calls(monkeypatch):
    """Count the calls that do not use the reference path."""
    calls = []
    forward = CpuBlock.forward

    def count(*args, **options):
        output = forward(*args, **options)
        calls.extend([1] if not isinstance(output, Declined) else [])
        return output

    monkeypatch.setattr(CpuBlock, "forward", count)
    return calls


@torch.no_grad()
def check(model, calls, blocks):
    batch = model.example(3, 5, torch.Generator().manual_seed(0))
    plain, fast = zoo.accelerate(copy.deepcopy(model), enabled=False), zoo.accelerate(model)
    expected = plain(batch).logits
    assert not calls

    torch.testing.assert_close(fast(batch).logits, expected)
    assert len(calls) == blocks


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_encoders_and_decoders_equal_the_reference_path(parts, calls):
    check(build("seq2seq", parts), calls, blocks=4)


@pytest.mark.parametrize("sublayers", ["parallel", "parallel-shared"])
def test_parallel_sublayers_equal_the_reference_path(sublayers, calls):
    check(build("language-model", {**PARALLEL, "sublayers": sublayers}), calls, blocks=2)


@torch.no_grad()
def test_prompts_are_processed_with_a_cache(calls):
    model = build("language-model", PARALLEL)
    prompt = [[3, 4, 5], [6, 7, 8]]
    plain = zoo.accelerate(copy.deepcopy(model), enabled=False)
    expected = zoo.generate(plain, prompt, sampler="greedy", max_length=4)
    assert not calls

    found = zoo.generate(model, prompt, sampler="greedy", max_length=4)
    assert [row[0].tokens for row in found] == [row[0].tokens for row in expected]
    assert calls


def test_the_reference_path_is_used_with_gradients_in_training_and_for_hooked_parts(calls):
    model = zoo.accelerate(build("seq2seq", {}))
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    model(batch)
    with torch.no_grad():
        model.train()(batch)
        model.eval()
        seen = []
        for block in (*model.encoder.blocks, *model.decoder.blocks):
            block.feed_forward.up.register_forward_hook(lambda *_: seen.append(1))
        model(batch)
    assert not calls
    assert len(seen) == 4


DROPOUT = {
    "of outputs": {"dropout": 0.5},
    "of weights": {"attention": {**ATTENTION, "align": {"type": "soft", "dropout": 0.5}}},
}


@pytest.mark.parametrize("parts", DROPOUT.values(), ids=DROPOUT)
@torch.no_grad()
def test_monte_carlo_dropout_is_applied(parts, calls):
    model = zoo.accelerate(build("seq2seq", parts))
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    expected = model(batch).logits
    assert torch.equal(model(batch).logits, expected)
    assert calls
    calls.clear()
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        for part in block.modules():
            part.train(isinstance(part, nn.Dropout))
    assert not torch.equal(model(batch).logits, model(batch).logits)
    assert not calls


def test_a_replaced_layer_is_called(calls):
    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    model = zoo.accelerate(build("seq2seq", {}))
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = model(batch).logits
        for block in (*model.encoder.blocks, *model.decoder.blocks):
            doubled = Doubled(6, 16)
            doubled.load_state_dict(block.feed_forward.down.state_dict())
            block.feed_forward.down = doubled
        calls.clear()
        assert not torch.allclose(model(batch).logits, before)
    assert not calls
